"""Transfers of equal size that share one link, computed for many such groups ("gatherings") at once.

The rates are max-min fair: a transfer whose own limit is below the equal share gets its limit; the others divide the
rest equally.
"""

from __future__ import annotations

import math

import numpy as np

from distsim.arrays import Floats
from distsim.engine.shared_link import shared_link


def shared_ends(joined: Floats, limits: Floats, capacity: float, num_bytes: float) -> Floats:
    """The end of each transfer, shape (gatherings, transfers). joined: the start of each transfer, of the same shape.

    limits: bytes/s of each transfer when it is alone, shape (transfers,). capacity: bytes/s of the link.

    >>> shared_ends(np.array([[0.0, 1.0], [0.0, 5.0]]), np.array([10.0, 10.0]), 10.0, 20.0).tolist()
    [[3.0, 4.0], [2.0, 7.0]]
    >>> shared_ends(np.array([[0.0, 0.0]]), np.array([2.0, 10.0]), 10.0, 20.0).tolist()
    [[10.0, 2.5]]
    """
    if num_bytes == 0.0:
        return joined.copy()
    if len(joined) > 1 and (limits == limits[0]).all():
        return _equal_ends(joined, float(limits[0]), capacity, num_bytes)
    return np.array([_ends_by_event(times, limits.tolist(), capacity, num_bytes) for times in joined])


def _equal_ends(joined: Floats, limit: float, capacity: float, num_bytes: float) -> Floats:
    """The first transfer to join ends first. Merges the sorted joins with the ends, in all gatherings at once.

    `received` counts the bytes that a transfer under way all the time would have received.
    """
    gatherings, transfers = joined.shape
    order = np.argsort(joined, axis=1, kind="stable")
    # Flat arrays with one more place per gathering, which stays empty.
    joins = np.full((gatherings, transfers + 1), math.inf)
    joins[:, :-1] = np.take_along_axis(joined, order, axis=1)
    joins = joins.ravel()
    goals, ends = np.full(joins.shape, math.inf), np.empty(joins.shape)
    joining = np.arange(gatherings) * (transfers + 1)
    ending = joining.copy()
    shares = np.minimum(limit, capacity / np.maximum(np.arange(transfers + 1), 1))  # by number under way
    received, now = np.zeros(gatherings), np.zeros(gatherings)
    for _ in range(2 * transfers):
        rate = shares[joining - ending]
        next_join, goal = joins[joining], goals[ending]
        next_end = now + (goal - received) / rate
        joins_now = next_join <= next_end
        received = np.where(joins_now, received + (next_join - now) * rate, goal)
        now = np.where(joins_now, next_join, next_end)
        goals[joining[joins_now]] = received[joins_now] + num_bytes
        ends[ending[~joins_now]] = now[~joins_now]
        joining += joins_now
        ending += ~joins_now
    found = np.empty_like(joined)
    np.put_along_axis(found, order, ends.reshape(gatherings, transfers + 1)[:, :-1], axis=1)
    return found


def _ends_by_event(joined: Floats, limits: list[float], capacity: float, num_bytes: float) -> list[float]:
    """The ends of one gathering, from one event to the next."""
    link, ends = shared_link(capacity, limits, num_bytes), [math.inf] * len(limits)
    for number in np.argsort(joined, kind="stable").tolist():
        link.join(float(joined[number]), (number,))
    while link.next_end < math.inf:
        now = link.next_end
        for ended in link.end(now):
            ends[ended] = now
    return ends
