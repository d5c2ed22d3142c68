"""A worker's exchange with a server, a gradient for parameters: what it remembers, and how the trace is told of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import simpy
from numpy.typing import NDArray

from distsim.network import Flow
from distsim.trace import NO_COLLECTIVE, NO_VERSION, SpanKind, TraceBuilder

Bools = NDArray[np.bool_]
Ranks = NDArray[np.int32]
Floats = NDArray[np.float64]


class Push:
    """A gradient for one server, and the parameters that answer it.

    The gradient is ready, the server begins to receive it, and it has arrived; the parameters leave as the answer, and
    have been pulled. asked_seconds: since when the worker waits for them: the arrival, or the moment it was cancelled.
    What has not come to pass is NaN. version: the update that the gradient went into. answered_version: of the
    parameters. gradient, parameters: on their way; newer parameters may take the place of older ones.
    """

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
        self.worker = np.array([push.worker for push in pushes], dtype=np.int32)
        self.step = np.array([push.step for push in pushes], dtype=np.int64)

    def tell(self, builder: TraceBuilder) -> None:
        """The spans and transfers of pushing, waiting and pulling."""
        worker, server = self.worker, np.full_like(self.worker, self.server)
        ready, began, arrived, asked, answered, pulled = map(
            self._seconds, ("ready", "began", "arrived", "asked", "answered", "pulled")
        )
        pushed, back = ((worker != self.host) & ~np.isnan(end) for end in (arrived, pulled))
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

    def _seconds(self, what: str) -> Floats:
        return np.array([getattr(push, f"{what}_seconds") for push in self.pushes])

    def _spans(
        self, builder: TraceBuilder, rows: Bools, who: Ranks, kind: SpanKind, start: Floats, end: Floats, way: str = ""
    ) -> None:
        count = int(rows.sum())
        names = np.array([f"{way} {worker}" if way else "" for worker in range(self.workers)])
        builder.extend(
            "spans", worker=who[rows], kind=np.full(count, kind), step=self.step[rows], start_seconds=start[rows],
            end_seconds=end[rows], bytes=np.full(count, 0.0 if kind == SpanKind.WAIT else self.bytes),
            label=names[self.worker[rows]],
        )  # fmt: skip

    def _transfers(
        self, builder: TraceBuilder, rows: Bools, source: Ranks, target: Ranks, start: Floats, end: Floats
    ) -> None:
        count = int(rows.sum())
        builder.extend(
            "transfers", source=source[rows], target=target[rows], bytes=np.full(count, self.bytes),
            start_seconds=start[rows], end_seconds=end[rows], chunk=np.zeros(count, np.int32),
            collective=np.full(count, NO_COLLECTIVE),
        )  # fmt: skip


def tell_contributions(builder: TraceBuilder, decided: Sequence[Push], server: int) -> None:
    """A row for each gradient that a server has decided about, in that order."""
    worker, step, read_version, version, cancelled = (
        np.array([getattr(push, name) for push in decided], dtype=np.int64)
        for name in ("worker", "step", "read_version", "version", "cancelled")
    )
    builder.extend(
        "contributions", version=version, server=np.full_like(worker, server), worker=worker, step=step,
        read_version=read_version, first_item=np.zeros_like(worker), items=np.ones_like(worker),
        applied=version != NO_VERSION, cancelled=cancelled.astype(bool),
    )  # fmt: skip
