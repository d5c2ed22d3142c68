"""Traces made from given staleness of gradients, to study learning without a cluster and without a clock."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from distsim.errors import InputError
from distsim.trace import Trace, TraceBuilder


def delayed(staleness: ArrayLike, batch: int = 1, seed: int = 0) -> Trace:
    """A run with an update a second, by one gradient. The k-th gradient read parameters `staleness[k]` updates old.

    The first parameters cannot be older than the start. All gradients come from one worker, so two runs of one seed
    have the same samples in the same order and differ only in their delays. `delayed([0] * 500, batch=B)` is plain SGD
    in one process; N synchronous workers with batches of B / N compute the same.

    >>> delayed([0, 3, 0, 3, 3]).contributions.read_version.tolist()
    [0, 0, 2, 0, 1]
    """
    delays = np.asarray(staleness)
    if delays.ndim != 1 or not len(delays) or not np.issubdtype(delays.dtype, np.integer) or delays.min() < 0:
        raise InputError.of(
            "staleness", staleness, "must be whole numbers from 0 on, one for each update", "take [0, 1]"
        )
    builder = TraceBuilder()
    for step, read_version in enumerate(np.maximum(np.arange(len(delays)) - delays, 0).tolist()):
        builder.applied(step + 1, worker=0, step=step, read_version=read_version)
        builder.update(step + 1, time_seconds=step + 1.0)
    scenario = {"policy": {"kind": "asynchronous"}, "workload": {"batch": batch}, "seed": seed}
    return builder.build(workers=1, servers=0, producer="simulated", scenario=scenario)


def plain(updates: int, batch: int, seed: int = 0) -> Trace:
    """Plain SGD in one process, an update a second.

    >>> plain(3, batch=8).contributions.staleness.tolist()
    [0, 0, 0]
    """
    return delayed(np.zeros(updates, dtype=np.int64), batch, seed)
