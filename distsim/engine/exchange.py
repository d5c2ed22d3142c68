"""A worker's exchange with a server, a gradient for parameters: what it remembers, and how the trace is told of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from distsim.arrays import Flags, Floats, Indices
from distsim.network import Flow
from distsim.trace import COMMUNICATION_KINDS, NO_COLLECTIVE, NO_VERSION, SpanKind, Texts, TraceBuilder


class Push:
    """A gradient for one server, and the parameters that answer it.

    The gradient is computed from its start to its stop, where a server may have cut it short. It is ready, the server
    begins to receive it, and it has arrived; the parameters leave as the answer, and have been pulled. asked_seconds:
    since when the worker waits for them: the arrival, or the moment it was cancelled. What has not come to pass is
    NaN. version: the update that the gradient went into. answered_version: of the parameters. gradient, parameters: on
    their way; newer parameters may take the place of older ones.
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


class Exchanges:
    """All exchanges with one server, as columns. On its own `host` it neither sends nor receives."""

    def __init__(self, pushes: Sequence[Push], server: int, host: int, workers: int, num_bytes: float) -> None:
        self.pushes = pushes
        self.server = server
        self.host = host
        self.workers = workers
        self.bytes = num_bytes
        self.worker = self._column("worker", np.int32)
        self.step = self._column("step", np.int64)

    def tell(self, builder: TraceBuilder) -> None:
        """The spans and transfers of computing, pushing, waiting and pulling."""
        worker, server = self.worker, self.server
        start, stop, ready, began, arrived, asked, answered, pulled = (
            self._column(f"{moment}_seconds", np.float64)
            for moment in ("start", "stop", "ready", "began", "arrived", "asked", "answered", "pulled")
        )
        pushed, back = ((worker != self.host) & ~np.isnan(end) for end in (arrived, pulled))
        # compute
        self._spans(builder, ~np.isnan(stop), worker, SpanKind.COMPUTE, start, stop)
        # push
        self._spans(builder, pushed, worker, SpanKind.SEND, ready, arrived)
        self._spans(builder, pushed, server, SpanKind.RECEIVE, began, arrived, "from worker")
        self._transfers(builder, pushed, worker, server, began, arrived)
        # wait
        self._spans(builder, answered > asked, worker, SpanKind.WAIT, asked, answered)
        # pull
        self._spans(builder, back, worker, SpanKind.RECEIVE, answered, pulled)
        self._spans(builder, back, server, SpanKind.SEND, answered, pulled, "to worker")
        self._transfers(builder, back, server, worker, answered, pulled)

    def _column(self, name: str, dtype: Any) -> NDArray[Any]:
        return np.fromiter(map(attrgetter(name), self.pushes), dtype, len(self.pushes))

    def _spans(
        self, builder: TraceBuilder, rows: Flags, who: Indices | int, kind: SpanKind, start: Floats, end: Floats,
        way: str = "",
    ) -> None:  # fmt: skip
        places = np.flatnonzero(rows)
        label = Texts(self.worker[places], [f"{way} {worker}" for worker in range(self.workers)]) if way else ""
        builder.extend(
            "spans", worker=who if isinstance(who, int) else who[places], kind=kind, step=self.step[places],
            start_seconds=start[places], end_seconds=end[places],
            bytes=self.bytes if kind in COMMUNICATION_KINDS else 0.0, label=label,
        )  # fmt: skip

    def _transfers(
        self,
        builder: TraceBuilder,
        rows: Flags,
        source: Indices | int,
        target: Indices | int,
        start: Floats,
        end: Floats,
    ) -> None:
        places = np.flatnonzero(rows)
        source, target = (who if isinstance(who, int) else who[places] for who in (source, target))
        builder.extend(
            "transfers", source=source, target=target, bytes=self.bytes,
            start_seconds=start[places], end_seconds=end[places], chunk=0, collective=NO_COLLECTIVE,
        )  # fmt: skip


def tell_contributions(builder: TraceBuilder, decided: Sequence[Push], server: int) -> None:
    """A row for each gradient that a server has decided about, in that order."""
    version, worker, step, read_version, cancelled = (
        np.fromiter(map(attrgetter(name), decided), np.int64, len(decided))
        for name in ("version", "worker", "step", "read_version", "cancelled")
    )
    builder.extend(
        "contributions", version=version, server=server, worker=worker, step=step, read_version=read_version,
        first_item=0, items=1, applied=version != NO_VERSION, cancelled=cancelled.astype(bool),
    )  # fmt: skip
