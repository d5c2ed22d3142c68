"""What a run's all-reduces leave in its trace: the workers' spans, and the transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.engine.recurrence.all_reduce import AllReduce
from distsim.engine.recurrence.drawn import Floats
from distsim.engine.recurrence.rows import SpanRows
from distsim.trace import SpanKind, Transfers


def tell_all_reduces(
    rows: SpanRows, step: Any, arrivals: Floats, ends: Floats, idle_from: Floats, num_bytes: Any, label: Any = ""
) -> None:
    """The spans of all-reduces; every argument is spread over the shape of `ends`, (…, workers).

    Until the last has joined a worker waits, from idle_from on, when it has nothing else to do; from then on it
    communicates.
    """
    worker = np.arange(ends.shape[-1])
    last = np.broadcast_to(arrivals.max(axis=-1, keepdims=True), ends.shape)
    rows.add_waits(worker, step, idle_from, last, label)
    rows.add(SpanKind.ALL_REDUCE, worker, step, last, ends, num_bytes, label)


def transfers(all_reduces: Sequence[AllReduce], arrivals: Floats) -> Transfers:
    """The transfers of a run, call by call; worked out when they are asked for, as there may be millions of them.

    all_reduces: those of one update. arrivals: when workers join them, shape (updates, all-reduces, workers).
    """
    rows = arrivals.shape[0] * arrivals.shape[1] * len(all_reduces[0].source)
    return Transfers.later(rows, partial(_transfers, all_reduces, arrivals))


def _transfers(all_reduces: Sequence[AllReduce], arrivals: Floats) -> Mapping[str, NDArray[Any]]:
    one, (updates, count, _) = all_reduces[0], arrivals.shape
    calls = updates * count
    times = np.empty((2, updates, count, len(one.source)))
    for number, all_reduce in enumerate(all_reduces):
        all_reduce.transfers(arrivals[:, number], times[:, :, number])
    return {
        "source": np.tile(one.source, calls),
        "target": np.tile(one.target, calls),
        "bytes": np.tile(np.concatenate([all_reduce.bytes for all_reduce in all_reduces]), updates),
        "start_seconds": times[0].ravel(),
        "end_seconds": times[1].ravel(),
        "chunk": np.tile(one.chunk, calls),
        "collective": np.repeat(np.arange(calls), len(one.source)),
    }
