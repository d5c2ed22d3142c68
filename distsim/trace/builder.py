"""Collects the rows of a trace while a run goes on; the simulator and the real runs write through it alike."""

from __future__ import annotations

from typing import Any

from distsim.trace.tables import (
    NO_COLLECTIVE,
    NO_SERVER,
    NO_VERSION,
    Contributions,
    SpanKind,
    Spans,
    Transfers,
    Updates,
)
from distsim.trace.trace import Trace


class TraceBuilder:
    """Append rows, then `build`.

    >>> builder = TraceBuilder()
    >>> builder.span(0, SpanKind.COMPUTE, step=0, start_seconds=0.0, end_seconds=0.5)
    >>> builder.update(1, time_seconds=0.5)
    >>> builder.build(workers=1, servers=0, producer="simulated").total_seconds
    0.5
    """

    def __init__(self) -> None:
        self._spans: list[tuple[Any, ...]] = []
        self._updates: list[tuple[Any, ...]] = []
        self._contributions: list[tuple[Any, ...]] = []
        self._transfers: list[tuple[Any, ...]] = []

    def span(
        self,
        worker: int,
        kind: SpanKind,
        step: int,
        start_seconds: float,
        end_seconds: float,
        num_bytes: float = 0.0,
        label: str = "",
    ) -> None:
        """One row of `Spans`."""
        self._spans.append((worker, kind, step, start_seconds, end_seconds, num_bytes, label))

    def update(self, version: int, time_seconds: float, server: int = NO_SERVER) -> None:
        """One row of `Updates`."""
        self._updates.append((version, server, time_seconds))

    def applied(
        self,
        version: int,
        worker: int,
        step: int,
        read_version: int,
        server: int = NO_SERVER,
        items: tuple[int, int] = (0, 1),
    ) -> None:
        """A gradient that went into update `version`; `items` is (first, count)."""
        self._contributions.append((version, server, worker, step, read_version, *items, True, False))

    def not_applied(
        self, worker: int, step: int, read_version: int, *, cancelled: bool, server: int = NO_SERVER
    ) -> None:
        """A gradient that was dropped on arrival, or cancelled before."""
        self._contributions.append((NO_VERSION, server, worker, step, read_version, 0, 1, False, cancelled))

    def transfer(
        self,
        source: int,
        target: int,
        num_bytes: float,
        start_seconds: float,
        end_seconds: float,
        chunk: int = 0,
        collective: int = NO_COLLECTIVE,
    ) -> None:
        """One row of `Transfers`."""
        self._transfers.append((source, target, num_bytes, start_seconds, end_seconds, chunk, collective))

    def push(
        self,
        worker: int,
        server: int,
        step: int,
        num_bytes: float,
        start_seconds: float,
        end_seconds: float,
        began_seconds: float | None = None,
    ) -> None:
        """A gradient on its way: the worker sends, the server receives, the network carries.

        began_seconds: when the server turned to it, later than start_seconds where gradients wait for their turn.
        """
        began = start_seconds if began_seconds is None else began_seconds
        self.span(worker, SpanKind.SEND, step, start_seconds, end_seconds, num_bytes)
        self.span(server, SpanKind.RECEIVE, step, began, end_seconds, num_bytes, f"from worker {worker}")
        self.transfer(worker, server, num_bytes, began, end_seconds)

    def pull(
        self,
        worker: int,
        server: int,
        step: int,
        num_bytes: float,
        asked_seconds: float,
        start_seconds: float,
        end_seconds: float,
    ) -> None:
        """Parameters on their way to a worker, which has waited for them since `asked_seconds`."""
        if start_seconds > asked_seconds:
            self.span(worker, SpanKind.WAIT, step, asked_seconds, start_seconds)
        self.span(worker, SpanKind.RECEIVE, step, start_seconds, end_seconds, num_bytes)
        self.span(server, SpanKind.SEND, step, start_seconds, end_seconds, num_bytes, f"to worker {worker}")
        self.transfer(server, worker, num_bytes, start_seconds, end_seconds)

    def all_reduce(self, step: int, num_bytes: float, arrivals: list[float], ends: list[float]) -> None:
        """Update `step` + 1, made by peers: worker i arrives at arrivals[i] and has the sum at ends[i].

        Nobody can finish before the last has arrived, so until then a worker waits and from then on it communicates.
        """
        last = max(arrivals)
        for worker, (arrival, end) in enumerate(zip(arrivals, ends, strict=True)):
            if last > arrival:
                self.span(worker, SpanKind.WAIT, step, arrival, last)
            self.span(worker, SpanKind.ALL_REDUCE, step, last, end, num_bytes)
            self.applied(step + 1, worker, step, read_version=step)
        self.update(step + 1, max(ends))

    def build(self, workers: int, servers: int, producer: str, **metadata: Any) -> Trace:
        """The trace of all rows so far."""
        return Trace(
            Spans.of_rows(self._spans),
            Updates.of_rows(self._updates),
            Contributions.of_rows(self._contributions),
            Transfers.of_rows(self._transfers),
            {"producer": producer, "workers": workers, "servers": servers, **metadata},
        )
