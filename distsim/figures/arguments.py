"""Checks of what callers pass to a figure: the names of its runs, and the policy of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from distsim.errors import InputError
from distsim.trace import Trace


def run_names(figure: str, found: Sequence[str], names: Sequence[str] | None) -> list[str]:
    """`names`, or the names in `found`, with a number where several runs have the same name.

    figure: the name of the figure, for the error. found: a name for each run. Raises InputError where the
    numbers of names and runs differ.

    >>> run_names("timeline", ["simulated", "simulated"], None)
    ['simulated 1', 'simulated 2']
    """
    if names is not None:
        if len(names) != len(found):
            rule = f"must name each of the {len(found)} traces"
            raise InputError.of(f"{figure}(names)", names, rule, "give one per trace")
        return list(names)
    if len(set(found)) == len(found):
        return list(found)
    seen: Counter[str] = Counter()
    numbered = []
    for name in found:
        seen[name] += 1
        numbered.append(f"{name} {seen[name]}" if found.count(name) > 1 else name)
    return numbered


def check_policy(figure: str, trace: Trace, kind: str, what: str) -> None:
    """Raises InputError unless the policy of the run in `trace` is `kind`, the only policy that has `what`.

    figure: the name of the figure, for the error. An empty trace passes, since the figure then says that it is empty.
    """
    if not len(trace.spans) or "scenario" not in trace.metadata or trace.scenario.policy.kind == kind:
        return
    raise InputError.of(
        f"{figure}(trace): policy.kind", trace.scenario.policy.kind, f"has no {what}, which this figure shows",
        f'draw a run of policy.kind = "{kind}"',
    )  # fmt: skip
