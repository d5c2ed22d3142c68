"""What runs that stand beside each other in one figure are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from distsim.errors import InputError


def run_names(figure: str, found: Sequence[str], names: Sequence[str] | None) -> list[str]:
    """The given names, or else what was found of each run, numbered where that is not enough to tell them apart.

    figure: whose argument `names` is. Raises InputError where there are more or fewer names than runs.

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
