"""A worker's exchange with a server, gradient against parameters, and the rows of the exchange in the trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from distsim.network import OVER, Flow
from distsim.trace import NO_VERSION, SpanKind, TraceBuilder


class Push:
    """A gradient for one server, and the parameters that the server answers with.

    Times are in seconds, NaN for an event that has not happened. The worker computes the gradient from start to stop; a
    server may bring stop forward. Then the gradient is ready, the server begins to receive it, and it arrives. Then the
    parameters leave as the answer and are pulled. asked_seconds: the start of the worker's wait for parameters, when
    the gradient has arrived or the step was cancelled. version: of the update with the gradient. answered_version: of
    the parameters. gradient, parameters: the transfers; newer parameters may replace older parameters.
    """

    start_seconds = math.nan
    stop_seconds = math.nan
    ready_seconds = math.nan
    began_seconds = math.nan
    arrived_seconds = math.nan
    asked_seconds = math.nan
    answered_seconds = math.nan
    pulled_seconds = math.nan
    version = NO_VERSION
    answered_version = NO_VERSION
    cancelled = False
    gradient: Flow | None = None
    parameters: simpy.Event

    def __init__(self, worker: int, step: int, read_version: int) -> None:
        self.worker = worker
        self.step = step
        self.read_version = read_version

    def began_before(self, end_seconds: float) -> bool:
        """Whether the step began before the run's last update. A step of that same instant counts if a server knew."""
        return self.start_seconds < end_seconds * (1 - OVER) or not math.isnan(self.asked_seconds)


def write_exchanges(builder: TraceBuilder, pushes: Sequence[Push], server: int, host: int, num_bytes: float) -> None:
    """Writes the rows of computing, pushing, waiting and pulling. A worker on the server's `host` moves no bytes."""
    worker, step = _column(pushes, "worker", np.int32), _column(pushes, "step", np.int64)
    start, stop, ready, began, arrived, asked, answered, pulled = (
        _column(pushes, f"{moment}_seconds", np.float64)
        for moment in ("start", "stop", "ready", "began", "arrived", "asked", "answered", "pulled")
    )
    arrived, pulled = (np.where(worker == host, math.nan, end) for end in (arrived, pulled))
    computed = ~np.isnan(stop)
    builder.extend(
        "spans", worker=worker[computed], kind=SpanKind.COMPUTE, step=step[computed], start_seconds=start[computed],
        end_seconds=stop[computed], bytes=0.0, label="",
    )  # fmt: skip
    builder.push(worker, server, step, num_bytes, ready, arrived, began)
    builder.pull(worker, server, step, num_bytes, asked, answered, pulled)


def write_contributions(builder: TraceBuilder, decided: Sequence[Push], server: int) -> None:
    """Writes a row for each gradient that a server has decided about, in the order of the decisions."""
    worker, step, read_version, version = (
        _column(decided, name, np.int64) for name in ("worker", "step", "read_version", "version")
    )
    builder.contributions(server, worker, step, read_version, version, _column(decided, "cancelled", np.bool_))


def _column(pushes: Sequence[Push], name: str, dtype: Any) -> NDArray[Any]:
    return np.fromiter(map(attrgetter(name), pushes), dtype, len(pushes))
