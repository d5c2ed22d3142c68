"""Some figures are of one policy alone: a run of another has nothing that they could show."""

from __future__ import annotations

from distsim.errors import InputError
from distsim.trace import Trace


def check_policy(figure: str, trace: Trace, kind: str, what: str) -> None:
    """Raises InputError where `trace` is of a run whose policy is not `kind`, the only one that has `what`.

    figure: whose argument `trace` is. A trace in which nothing was recorded passes: it is drawn empty, and says so.
    """
    if not len(trace.spans) or "scenario" not in trace.metadata or trace.scenario.policy.kind == kind:
        return
    raise InputError.of(
        f"{figure}(trace): policy.kind", trace.scenario.policy.kind, f"has no {what}, which this figure shows",
        f'draw a run of policy.kind = "{kind}"',
    )  # fmt: skip
