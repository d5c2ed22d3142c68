"""Every table of theory against simulation, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from distsim.accuracy import (
    checkpoints,
    collectives,
    contention,
    flexrr,
    local_sgd,
    order_statistics,
    pipelines,
    references,
    sharding,
    staleness,
)
from distsim.accuracy.claim import Claim

SIMULATED, PRINTED = "simulated", "printed"


@dataclass(frozen=True)
class Table:
    """One table. beside: the column beside the expressions, `SIMULATED` or `PRINTED`."""

    name: str
    claims: Callable[[], list[Claim]]
    title: str
    beside: str = SIMULATED

    def row(self, claim: Claim) -> dict[str, Any]:
        """A row as plain values."""
        return {
            "case": claim.case,
            "expression": claim.expression,
            self.beside: claim.found,
            "difference": claim.difference,
            "allowed": claim.allowed,
            "at_most": claim.at_most,
            "holds": claim.holds,
        }


TABLES = (
    Table(
        "order_statistics", order_statistics.claims,
        "Order statistics: mean seconds of a step that waits for K of N workers, the others cancelled",
    ),
    Table("local_sgd", local_sgd.claims, "Local SGD, N workers, an average every so many steps: seconds per step"),
    Table("pipelines", pipelines.claims, "Pipelines of 4 stages: idle share, seconds of a step"),
    Table("sharding", sharding.claims, "Sharded and tensor parallel training, 8 workers: seconds and bytes of a step"),
    Table("checkpoints", checkpoints.claims, "Checkpoints that take C, failures every M: mean seconds of a run"),
    Table("contention", contention.claims, "Contention, eduWRENCH's examples: seconds until a transfer has arrived"),
    Table("staleness", staleness.claims, "Asynchronous, N workers of Exp(1 s), and stale synchronous with bound s"),
    Table("flexrr", flexrr.claims, "FlexRR(s) with a persistent straggler: mean seconds per step, 20 seeds"),
    Table("collectives", collectives.claims, "Collectives, 1 to 17 ranks, five links: seconds by closed form"),
    Table("references", references.claims, "Digits that others print for these expressions", PRINTED),
)  # fmt: skip
