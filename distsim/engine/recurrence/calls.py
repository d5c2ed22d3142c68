"""What a run's all-reduces leave in its trace: the workers' spans, and the transfers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distsim.engine.recurrence.all_reduce import AllReduce
from distsim.engine.recurrence.drawn import Floats
from distsim.engine.recurrence.rows import NO_LABEL, Labels, SpanRows, blank_columns
from distsim.trace import SpanKind, Transfers


def tell_all_reduces(
    rows: SpanRows, step: Any, arrivals: Floats, ends: Floats, idle_from: Floats, num_bytes: Any,
    label: Labels = NO_LABEL,
) -> None:  # fmt: skip
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
    return Transfers.later(rows, partial(_columns, all_reduces, arrivals))


def _columns(all_reduces: Sequence[AllReduce], arrivals: Floats) -> Mapping[str, NDArray[Any]]:
    one, (updates, count, _) = all_reduces[0], arrivals.shape
    shape = (updates, count, len(one.source))
    columns = blank_columns(Transfers, math.prod(shape))
    source, target, num_bytes, start, end, chunk, collective = (column.reshape(shape) for column in columns.values())
    for number, all_reduce in enumerate(all_reduces):
        all_reduce.transfers(arrivals[:, number], start[:, number], end[:, number])
        num_bytes[:, number] = all_reduce.bytes
    source[:], target[:], chunk[:] = one.source, one.target, one.chunk
    collective[:] = np.arange(updates * count).reshape(updates, count, 1)
    return columns
