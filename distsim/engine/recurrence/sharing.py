"""Transfers of equal size that share one link fairly, many such gatherings at once.

Fair is max-min: each has an equal share, but none more than its own limit; what that leaves the others divide. All
arrays have the gatherings along their first axis.
"""

from __future__ import annotations

import math

import numpy as np

from distsim.engine.recurrence.drawn import Floats


def shared_ends(joined: Floats, limits: Floats, capacity: Floats, num_bytes: float) -> Floats:
    """When each transfer is over, shape (gatherings, transfers).

    joined: when each joins, of that shape. limits: bytes per second that each can take alone, of that shape or
    (transfers,). capacity: bytes per second of the link, shape (gatherings,).

    >>> shared_ends(np.array([[0.0, 1.0]]), np.array([10.0, 10.0]), np.array([10.0]), 20.0).tolist()
    [[3.0, 4.0]]
    >>> shared_ends(np.array([[0.0, 0.0]]), np.array([2.0, 10.0]), np.array([10.0]), 20.0).tolist()
    [[10.0, 2.5]]
    """
    limits = np.broadcast_to(limits, joined.shape)
    if num_bytes == 0.0:
        return joined.copy()
    if (limits == limits[:, :1]).all():
        return _equal_ends(joined, limits[:, 0], capacity, num_bytes)
    return _unequal_ends(joined, limits, capacity, num_bytes)


def _equal_ends(joined: Floats, limit: Floats, capacity: Floats, num_bytes: float) -> Floats:
    """Who joined first is over first: a merge of the sorted joinings with the endings.

    `received` counts the bytes that a transfer would have got which is always under way.
    """
    gatherings, transfers = joined.shape
    order = np.argsort(joined, axis=1, kind="stable")
    # Flat arrays of one more place per gathering, in which nobody joins.
    joins = np.full((gatherings, transfers + 1), math.inf)
    joins[:, :-1] = np.take_along_axis(joined, order, axis=1)
    joins = joins.ravel()
    goals, ends = np.full(joins.shape, math.inf), np.empty(joins.shape)
    first = np.arange(gatherings) * (transfers + 1)
    joining, ending = first.copy(), first.copy()
    shares = np.minimum(limit[:, None], capacity[:, None] / np.maximum(np.arange(transfers + 1), 1)).ravel()
    received, now = np.zeros(gatherings), np.zeros(gatherings)
    for _ in range(2 * transfers):
        rate = shares[joining - ending + first]
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


def _unequal_ends(joined: Floats, limits: Floats, capacity: Floats, num_bytes: float) -> Floats:
    """From one event to the next: a transfer joins, or one is over, and all shares are found anew."""
    order = np.argsort(limits, axis=1, kind="stable")
    joined, limits = np.take_along_axis(joined, order, axis=1), np.take_along_axis(limits, order, axis=1)
    left, ends = np.full(joined.shape, num_bytes), np.full(joined.shape, math.inf)
    coming, under_way = np.ones(joined.shape, dtype=bool), np.zeros(joined.shape, dtype=bool)
    now = np.zeros(len(joined))
    rows = np.arange(len(joined))
    for _ in range(2 * joined.shape[1]):
        rates = _fair_rates(limits, under_way, capacity)
        over = np.where(under_way, now[:, None] + left / rates, math.inf)
        joins = np.where(coming, joined, math.inf)
        ender, joiner = over.argmin(axis=1), joins.argmin(axis=1)
        next_end, next_join = over[rows, ender], joins[rows, joiner]
        joins_now = next_join <= next_end
        then = np.where(joins_now, next_join, next_end)
        left -= np.where(under_way, (then - now)[:, None] * rates, 0.0)
        now = then
        coming[rows[joins_now], joiner[joins_now]] = False
        under_way[rows[joins_now], joiner[joins_now]] = True
        ends_now = ~joins_now
        ends[rows[ends_now], ender[ends_now]] = now[ends_now]
        under_way[rows[ends_now], ender[ends_now]] = False
    found = np.empty_like(joined)
    np.put_along_axis(found, order, ends, axis=1)
    return found


def _fair_rates(limits: Floats, under_way: Floats, capacity: Floats) -> Floats:
    """The rate of each transfer, whose limits ascend along the last axis; of no meaning where it is not under way.

    Going up, each keeps to its limit as long as that is below an equal share of what is left; from there on all share.
    """
    taken = np.where(under_way, limits, 0.0)
    before = np.cumsum(taken, axis=1) - taken
    number = np.cumsum(under_way, axis=1)
    waiting = number[:, -1:] - number + under_way  # this one, and those above it
    share = (capacity[:, None] - before) / np.maximum(waiting, 1)
    shares = under_way & (limits >= share)
    first = shares.argmax(axis=1)
    level = np.where(shares.any(axis=1), share[np.arange(len(share)), first], math.inf)
    return np.minimum(limits, level[:, None])
