"""FlexRR: a stale synchronous run in which a worker that falls behind hands pieces of its step to its helpers.

Source: Harlap et al. 2016, Addressing the straggler problem for iterative convergent parallel ML (SoCC). A worker
there asks for help when it is about 20 % behind; the default here is the same (taken from a secondary source). The
moment at which a helper goes on with its own work is our reading of the article (see `FlexRRPlan`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Gt, Le

from distsim.policies.flexrr_plan import FlexRRPlan
from distsim.policies.policy import WithServer
from distsim.policies.stale_synchronous import StaleSynchronousRule
from distsim.validated_table import Count, CountOrZero


@dataclass(frozen=True)
class FlexRR(WithServer):
    """Rapid reassignment of work among small groups of workers.

    staleness, stop: as in stale synchronous. items: pieces of work in a step. group: helpers of each worker.
    threshold: how far behind a helper a worker must be to hand it a piece, as a share of a step.
    """

    staleness: CountOrZero = 0
    items: Count = 8
    group: Count = 2
    threshold: Annotated[float, Gt(0.0), Le(1e6)] = 0.2
    stop: Literal["total", "per_worker"] = "total"

    kind: ClassVar = "flexrr"
    has_global_step: ClassVar = False
    receive: ClassVar = "fifo"
    real_model: ClassVar = False
    real_machines: ClassVar = False  # pieces are handed out through files that all ranks share

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where a worker has fewer others than `group` to help it."""
        if self.group >= workers:
            raise ValueError(
                f"group = {self.group} must be fewer than the {workers} workers, which are helpers of each other. "
                f"Cure: write group = {max(workers - 1, 1)} or fewer, or add workers"
            )

    def updates(self, steps: int, workers: int) -> int:
        """The number of updates after which the run ends."""
        return steps * workers

    def plan(self, workers: int) -> FlexRRPlan:
        """A fresh plan for one run: which worker computes which piece."""
        return FlexRRPlan(self, workers)

    def rule(self, workers: int) -> StaleSynchronousRule:
        """A fresh rule for one run. The plan, not the server, decides which worker computes which piece."""
        return StaleSynchronousRule(workers, self.staleness)
