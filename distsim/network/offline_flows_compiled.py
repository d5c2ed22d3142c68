"""The ends of flows that are all known in advance: `offline_flows`, compiled by numba, flow by flow.

end          flows whose last byte has arrived leave the network.
join         flows whose latency is over join their links; then all rates are new.
share out    the link with the smallest equal share limits its flows to that share; the rest is filled likewise.

The first call on a machine compiles for some seconds. The code is then kept beside this file or in the user's cache.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from distsim.arrays import Floats, Integers
from distsim.network.link import OVER
from distsim.network.offline_flows import NEARLY


def ends_of(source: Integers, target: Integers, capacities: Floats, joins: Floats, num_bytes: Floats) -> Floats:
    """When each flow ends; joins: when its latency is over."""
    # Constants of other modules are arguments, because cached compiled code would not notice a changed constant.
    return np.asarray(_ends_of(source, target, capacities, joins, num_bytes, OVER, NEARLY))


@njit(cache=True)
def _ends_of(
    source: Integers, target: Integers, capacities: Floats, joins: Floats, num_bytes: Floats, over: float, nearly: float
) -> Floats:
    ends = joins.copy()  # of flows under way: unless rates change
    order = np.argsort(joins, kind="mergesort")
    left = num_bytes.copy()  # bytes, at `since`
    since = joins.copy()
    rates = np.zeros(len(joins))  # 0: has none yet
    under_way = np.empty(len(joins), dtype=np.int64)
    count = joined = 0
    while True:
        now = math.inf
        for flow in under_way[:count]:
            now = min(now, ends[flow])
        if joined < len(order):
            now = min(now, joins[order[joined]])
        if now == math.inf:
            return ends
        # end
        level = math.inf
        going_on = 0
        for flow in under_way[:count]:
            if ends[flow] <= now + over * now:
                ends[flow] = now
                level = min(level, rates[flow])
            else:
                under_way[going_on] = flow
                going_on += 1
        count = going_on
        # join
        while joined < len(order) and joins[order[joined]] <= now:
            if num_bytes[order[joined]] > 0.0:
                level = 0.0
                under_way[count] = order[joined]
                count += 1
            joined += 1
        # share out
        _share_out(now, level * nearly, under_way[:count], source, target, capacities, left, since, rates, ends)


@njit(cache=True)
def _share_out(
    now: float,
    level: float,
    under_way: Integers,
    source: Integers,
    target: Integers,
    capacities: Floats,
    left: Floats,
    since: Floats,
    rates: Floats,
    ends: Floats,
) -> None:
    """New rates for the flows that had `level` or more; slower ones keep theirs."""
    free = capacities.copy()
    crossing = np.zeros(len(capacities), dtype=np.int64)  # flows without a rate, by link
    waiting = 0
    for flow in under_way:
        if rates[flow] < level:
            free[source[flow]] -= rates[flow]
            free[target[flow]] -= rates[flow]
        else:
            left[flow] = max(left[flow] - rates[flow] * (now - since[flow]), 0.0)
            since[flow] = now
            rates[flow] = 0.0
            crossing[source[flow]] += 1
            crossing[target[flow]] += 1
            waiting += 1
    # The flows on each link, one link after the other.
    first = np.zeros(len(capacities) + 1, dtype=np.int64)
    first[1:] = np.cumsum(crossing)
    place = first[:-1].copy()
    flows = np.empty(2 * waiting, dtype=np.int64)
    for flow in under_way:
        if rates[flow] == 0.0:
            for link in (source[flow], target[flow]):
                flows[place[link]] = flow
                place[link] += 1
    while waiting:
        bottleneck, share = -1, math.inf
        for link in range(len(capacities)):
            if crossing[link] and free[link] / crossing[link] < share:
                bottleneck, share = link, free[link] / crossing[link]
        for flow in flows[first[bottleneck] : first[bottleneck + 1]]:
            if rates[flow] == 0.0:
                rates[flow] = share
                ends[flow] = now + left[flow] / share
                waiting -= 1
                # The other flows on its links divide the rest.
                for link in (source[flow], target[flow]):
                    crossing[link] -= 1
                    free[link] -= share
