"""The calls of an all-reduce in a run, one after the other: when workers join and leave each; the rows of the trace.

What one call takes is in `distsim.collective_times`. A call's duration depends only on the differences between the
times of joining: if all workers join a second later, all workers have the sum a second later. In some calls every
worker also has the sum a fixed time after one common moment. Then an update depends only on this moment, and all
updates of the run are computed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distsim.arrays import Floats
from distsim.collective_times.all_reduce import AllReduce
from distsim.engine.recurrence.rows import NO_LABEL, Labels, SpanRows
from distsim.groups import ALL_REDUCE, GroupExchange
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Transfers
from distsim.trace.derived import CollectiveTransfers


def in_sequence(all_reduces: Sequence[AllReduce], ready: Floats) -> tuple[Floats, Floats]:
    """The times when each worker joins and leaves each all-reduce of a run: two arrays of the shape of `ready`.

    all_reduces: the calls of one update, in order; a worker joins a call when it has left the call before.
    ready: seconds that each worker works from the end of the update before (at first from 0) until it could join,
    shape (updates, all-reduces, workers).
    """
    arrivals, ends = np.empty_like(ready), np.empty_like(ready)
    after = all_reduces[-1].after
    if after is not None:
        # Here seconds count from the common moment of the update before.
        begins = np.concatenate([np.zeros((1, len(after))), np.broadcast_to(after, (len(ready) - 1, len(after)))])
        _one_update(all_reduces, begins, ready, arrivals, ends)
        zero = np.zeros((len(ready), 1, 1))
        np.cumsum(ends[:-1, -1, 0] - after[0], out=zero[1:, 0, 0])
        arrivals += zero
        ends += zero
        return arrivals, ends
    begin = np.zeros(ready.shape[-1])
    for update in range(len(ready)):
        _one_update(all_reduces, begin, ready[update], arrivals[update], ends[update])
        begin = ends[update, -1]
    return arrivals, ends


def _one_update(
    all_reduces: Sequence[AllReduce], begins: Floats, ready: Floats, arrivals: Floats, ends: Floats
) -> None:
    """Fills in `arrivals` and `ends`, (…, all-reduces, workers), of updates that start at `begins`, (…, workers)."""
    for number, all_reduce in enumerate(all_reduces):
        here = np.add(begins, ready[..., number, :], out=arrivals[..., number, :])
        if number:
            np.maximum(here, ends[..., number - 1, :], out=here)
        ends[..., number, :] = all_reduce.ends(here)


def tell_exchanges(
    rows: SpanRows, step: Any, arrivals: Floats, ends: Floats, idle_from: Floats, num_bytes: Any,
    label: Labels = NO_LABEL, exchange: GroupExchange = ALL_REDUCE, workers: range | None = None,
) -> None:  # fmt: skip
    """Writes the spans of one exchange. All arguments are broadcast to the shape of `ends`, (…, workers).

    A worker waits from idle_from, when its other work is done, until the last worker of its group has joined. From then
    on the worker communicates. workers: those that joined, whole groups of them; None: all.
    """
    last = np.broadcast_to(exchange.last(arrivals), ends.shape)
    own = slice(workers.start, workers.stop) if workers else slice(None)
    worker = np.arange(ends.shape[-1])[own]
    rows.add_waits(worker, step, idle_from[..., own], last[..., own], label)
    rows.add(SpanKind[exchange.kind.upper()], worker, step, last[..., own], ends[..., own], num_bytes, label)


def transfers(
    scenario: Scenario, sizes: Sequence[float], arrivals: Floats, exchanges: Sequence[GroupExchange] = ()
) -> Transfers:
    """The transfers of a run, call by call. There may be millions, so they are computed only when a caller reads them.

    sizes: bytes of each collective of one update. arrivals: when workers join, shape (updates, collectives, workers).
    exchanges: the collectives of one update; by default all are all-reduces.
    """
    cluster, communication = scenario.cluster, scenario.communication
    return Transfers.later(CollectiveTransfers(cluster, communication, tuple(sizes), arrivals, tuple(exchanges)))
