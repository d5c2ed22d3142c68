"""Max-min fairness by progressive filling.

The link with the smallest equal share is a bottleneck: its flows get that share. Remove these flows, and their part
of every capacity, from the network. Then fill the rest in the same way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

L = TypeVar("L", bound=Hashable)


def max_min_rates(paths: Sequence[Sequence[Hashable]], capacities: Mapping[Any, float]) -> list[float]:
    """The max-min fair rate of each flow.

    paths: the links that each flow crosses, at least one. capacities: of the links, in any unit; rates have this unit.

    >>> max_min_rates([["a"], ["a", "b"], ["b"]], {"a": 10.0, "b": 4.0})
    [8.0, 2.0, 2.0]
    """
    rates = [0.0] * len(paths)
    for _, share, held in bottlenecks(paths, capacities):
        for flow in held:
            rates[flow] = share
    return rates


def bottlenecks(paths: Sequence[Sequence[L]], capacities: Mapping[L, float]) -> Iterator[tuple[L, float, list[int]]]:
    """(link, share, flows that the link limits to the share) of each bottleneck, the smallest share first."""
    crossing: dict[L, list[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            crossing.setdefault(link, []).append(flow)
    left = {link: capacities[link] for link in crossing}
    open_flows = {link: len(flows) for link, flows in crossing.items()}
    settled = [False] * len(paths)
    while left:
        bottleneck = min(left, key=lambda link: left[link] / open_flows[link])
        share = left[bottleneck] / open_flows[bottleneck]
        held = [flow for flow in crossing[bottleneck] if not settled[flow]]
        for flow in held:
            settled[flow] = True
            # The other flows on its links divide the rest.
            for link in paths[flow]:
                open_flows[link] -= 1
                if open_flows[link]:
                    left[link] = max(left[link] - share, 0.0)
                else:
                    del left[link]
        yield bottleneck, share, held
