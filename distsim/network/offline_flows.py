"""The ends of flows that are all known in advance, without a clock.

No event on the network starts another flow, so columns replace the processes of a story. From instant to instant:

end          flows whose last byte has arrived leave the network.
join         flows whose latency is over join their links.
share out    a rate below that of a flow that has left cannot change. Nor can a rate below the level that a new flow
             reaches on its links against the old rates. Only the other flows are filled progressively.

Where numba is installed (the extra `fast`), `offline_flows_compiled` does the same for many flows, link by link.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from distsim.arrays import Floats, Integers
from distsim.network.link import OVER

NEARLY = 1 - 1e-9  # two links with the same share may hold their flows to rates that differ by rounding
WORTH_COMPILING = 1000  # flows; for fewer, loading the compiled code takes longer than they do


def flow_ends(
    paths: ArrayLike,
    capacities: ArrayLike,
    start_seconds: ArrayLike,
    num_bytes: ArrayLike,
    latency_seconds: ArrayLike = 0.0,
) -> Floats:
    """The time when each flow's last byte has arrived, in seconds.

    paths: the two links that each flow crosses, by number: its source's and its target's. capacities: of the links,
    in bytes/s. start_seconds: the start of the latency. The last three: one value for each flow, or one for all.
    Raises ValueError where a path is not two different links.

    >>> ends = flow_ends([[0, 2], [1, 2]], [1e6, 1e6, 1e6], 0.0, [1e6, 5e5], latency_seconds=0.5)
    >>> [round(end, 9) for end in ends.tolist()]
    [2.0, 1.5]
    """
    links = np.asarray(paths, dtype=np.int64).reshape(-1, 2)
    source, target = np.ascontiguousarray(links.T)
    if (source == target).any():
        raise ValueError("a flow crosses two different links")
    joins = np.zeros(len(links)) + np.asarray(start_seconds) + np.asarray(latency_seconds)
    sizes = np.zeros(len(links)) + np.asarray(num_bytes)
    ends_of = in_columns
    if len(links) >= WORTH_COMPILING:
        with suppress(ImportError):  # numba is an extra
            from distsim.network.offline_flows_compiled import ends_of
    return ends_of(source, target, np.asarray(capacities, dtype=np.float64), joins, sizes)


def in_columns(source: Integers, target: Integers, capacities: Floats, joins: Floats, num_bytes: Floats) -> Floats:
    """The ends of flows, in numpy. joins: the time when the latency of each flow ends."""
    under_way = UnderWay(source, target, capacities, num_bytes)
    ends = joins.copy()  # of flows without bytes
    order = np.argsort(joins, kind="stable")
    order = order[num_bytes[order] > 0.0]
    times = joins[order].tolist()
    joined = 0
    while True:
        now = min(float(under_way.ends.min(initial=math.inf)), times[joined] if joined < len(times) else math.inf)
        if now == math.inf:
            return ends
        # end
        ended, level = under_way.end(now)
        ends[ended] = now
        # join
        first = joined
        while joined < len(times) and times[joined] <= now:
            joined += 1
        if joined > first:
            level = min(level, under_way.join(now, order[first:joined]))
        # share out
        under_way.share_out(now, level * NEARLY)


class UnderWay:
    """The flows under way, in columns over all flows.

    rates: in bytes/s; 0 for a flow that is not under way, infinite for one that has joined and waits for its rate.
    ends: in seconds, as long as rates stay; infinite for a flow that is not under way.
    """

    def __init__(self, source: Integers, target: Integers, capacities: Floats, num_bytes: Floats) -> None:
        self.source = source
        self.target = target
        self.capacities = capacities
        self.rates = np.zeros(len(source))
        self.ends = np.full(len(source), math.inf)
        self._left = num_bytes.copy()  # bytes, at _since
        self._since = np.zeros(len(source))

    def end(self, now: float) -> tuple[Integers, float]:
        """The flows that end now leave; returns them, and the lowest of their rates."""
        over = (self.ends <= now + OVER * now).nonzero()[0]
        level = float(self.rates[over].min(initial=math.inf))
        self.rates[over] = 0.0
        self.ends[over] = math.inf
        return over, level

    def join(self, now: float, new: Integers) -> float:
        """Flows join. Returns a level: against the old rates, each new flow reaches at least this rate."""
        level = math.inf
        links, newcomers = np.unique(np.concatenate((self.source[new], self.target[new])), return_counts=True)
        for link, count in zip(links.tolist(), newcomers.tolist(), strict=True):
            there = ((self.source == link) | (self.target == link)) & (self.rates > 0.0)
            level = min(level, _level(self.capacities[link], self.rates[there], count))
        self.rates[new] = math.inf
        self._since[new] = now
        return level

    def share_out(self, now: float, level: float) -> None:
        """New rates for the flows that had `level` or more."""
        changed = (self.rates >= level).nonzero()[0]
        slow = ((self.rates > 0.0) & (self.rates < level)).nonzero()[0]
        source, target, count = self.source[changed], self.target[changed], len(self.capacities)
        free = self.capacities.copy()
        for links in (self.source, self.target):
            free -= np.bincount(links[slow], self.rates[slow], count)
        old = self.rates[changed]
        received = np.where(old == math.inf, 0.0, old) * (now - self._since[changed])
        left = np.maximum(self._left[changed] - received, 0.0)
        rates = _filled(source, target, free)
        self._left[changed], self._since[changed], self.rates[changed] = left, now, rates
        self.ends[changed] = now + left / rates


def _level(capacity: float, rates: Floats, newcomers: int) -> float:
    """The rate of each new flow on a link whose other flows keep their rates, or get the same rate as a new flow."""
    slowest = np.sort(rates)
    sharing = np.arange(newcomers + len(rates), newcomers - 1, -1)
    shares = (capacity - np.concatenate(((0.0,), np.cumsum(slowest)))) / sharing
    return float(shares[np.argmax(np.append(slowest, math.inf) >= shares)])


def _filled(source: Integers, target: Integers, free: Floats) -> Floats:
    """The max-min fair rates of flows over links with `free` capacity.

    A link is a bottleneck where none of its flows gets less on its other link.
    """
    rates = np.empty(len(source))
    flows = np.arange(len(source))
    both = np.concatenate((source, target))  # the sources of all flows that have no rate yet, then their targets
    crossing = np.bincount(both, minlength=len(free)).astype(np.float64)
    while len(flows):
        shares = free / np.where(crossing, crossing, math.nan)
        offers = shares.take(both)
        lower = np.minimum(offers[: len(flows)], offers[len(flows) :])
        bottleneck = np.ones(len(free), dtype=bool)
        bottleneck[both[offers > np.concatenate((lower, lower))]] = False
        holding = bottleneck.take(both)
        held = holding[: len(flows)] | holding[len(flows) :]
        gone, kept = held.nonzero()[0], (~held).nonzero()[0]
        got = lower.take(gone)
        rates[flows.take(gone)] = got
        # The other flows on their links divide the rest.
        links = both.take(np.concatenate((gone, gone + len(flows))))
        free = free - np.bincount(links, np.concatenate((got, got)), len(free))
        crossing -= np.bincount(links, minlength=len(free))
        both = both.take(np.concatenate((kept, kept + len(flows))))
        flows = flows.take(kept)
    return rates
