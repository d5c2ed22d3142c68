"""Sentences under a printed table that explain what a reader could misread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from distsim.cli.output import NOT_APPLICABLE
from distsim.link_traffic import why_none
from distsim.policies import Ddp, LocalSgd, Policy
from distsim.trace import Trace


def footnotes(*traces: Trace) -> list[str]:
    """The footnotes of a table about these traces of one scenario."""
    return [*of_step(traces[0].scenario.policy), *dict.fromkeys(_of_link(traces))]


def of_step(policy: Policy) -> list[str]:
    """A footnote where one step of the table is several local steps of a worker.

    >>> of_step(LocalSgd(period=8))
    ['step time: from one update to the next, and an update comes every 8 local steps (policy.period)']
    """
    match policy:
        case LocalSgd(period=count):
            key = "policy.period"
        case Ddp(accumulate=count):
            key = "policy.accumulate"
        case _:
            return []
    update = f"from one update to the next, and an update comes every {count} local steps ({key})"
    return [f"step time: {update}"] if count > 1 else []


def _of_link(traces: Iterable[Trace]) -> Iterator[str]:
    """Why a table shows no bytes of the busiest link, or which bytes it shows."""
    for trace in traces:
        if len(trace.transfers):
            if trace.scenario.cluster.nodes is not None:
                yield "busiest link: a NIC's; what stays inside a node is not counted"
            continue
        reason = why_none(trace)
        cure = '; communication.implementation = "schedule" does' if reason.startswith("the backend") else ""
        yield f"busiest link {NOT_APPLICABLE}: {reason}{cure}"
