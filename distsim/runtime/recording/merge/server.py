"""Merges the records of workers and servers.

A push starts at the worker's moment and ends at the server's, and an answer the other way round, since all processes
share one clock. Messages that only end the run are left out.

A cancelled step counts as compute until the answer that cancels it leaves the server. The worker sleeps on until the
answer arrives, and that sleep does not count.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from distsim.arrays import Floats
from distsim.runtime.recording.merge.computes import PARTS
from distsim.runtime.recording.recorder import Record
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, TraceBuilder


class ServerMerge:
    """The trace of workers and servers. Messages between two ranks stand in the same order in the records of both.

    left_out: by (source, target), messages that are not in the trace.
    """

    def __init__(self, records: list[Record], scenario: Scenario, zero: float) -> None:
        self.scenario = scenario
        self.workers = records[: scenario.cluster.workers]
        self.servers = {server: records[server] for server in scenario.servers}
        self.num_bytes = float(self.workers[0].facts["num_bytes"])
        self.zero = zero
        self.builder = TraceBuilder()
        self.left_out: Counter[tuple[int, int]] = Counter()
        ends = {
            server: max((end for _, _, end in record.rows("updates")), default=math.inf)
            for server, record in self.servers.items()
        }
        # A fifo server receives nothing after its own last update. Concurrent pushes travel until the run is over.
        self.fifo = scenario.receive == "fifo"
        self.ends = ends if self.fifo else dict.fromkeys(ends, max(ends.values()))

    def merge(self) -> TraceBuilder:
        """Adds all rows."""
        for server, record in self.servers.items():
            self.updates(server, record)
        for worker, record in enumerate(self.workers):
            self.computes(worker, record)
        for server in self.servers:
            for worker in range(len(self.workers)):
                self.pushes(worker, server)
                self.pulls(worker, server)
        return self.builder

    def completed(self, trace: Trace) -> Trace:
        """The trace of all rows, once its counts are checked."""
        return trace

    def updates(self, server: int, record: Record) -> None:
        """Adds the server's updates, and the gradients of each."""
        for version, begin, end in record.rows("updates"):
            self.builder.span(server, SpanKind.APPLY, int(version) - 1, begin - self.zero, end - self.zero)
            self.builder.update(int(version), end - self.zero, server)
        for version, worker, step, read_version in record.rows("applied"):
            self.builder.applied(int(version), int(worker), int(step), int(read_version), server)
        for worker, step, read_version in record.rows("dropped"):
            self.builder.not_applied(int(worker), int(step), int(read_version), cancelled=False, server=server)

    def computes(self, worker: int, record: Record) -> None:
        """A worker's steps. Those that were cancelled belong to the only server."""
        server, at_server = next(iter(self.servers.items()))
        cancelled = {read_version for _, read_version in rows_of(at_server, "cancelled", worker)}
        told = {version: start for _, version, _, start in rows_of(at_server, "answers", worker)}
        answers: dict[float, float] = {}  # of the cancelled steps: when the answer that cancelled left the server
        for step, read_version, _, _ in record.rows("computes"):
            if read_version in cancelled:
                self.builder.not_applied(worker, int(step), int(read_version), cancelled=True, server=server)
                answers[step] = min(at for version, at in told.items() if version > read_version)
        for kind, table in PARTS.items():
            for step, *_, start, end in record.rows(table):
                until = min(end, max(start, answers.get(step, end)))
                self.builder.span(worker, kind, int(step), start - self.zero, until - self.zero)

    def pushes(self, worker: int, server: int) -> None:
        """A worker's gradients on their way to a server."""
        if self.scenario.host(server) == worker:
            return  # they cross no network
        sent, arrivals = (
            rows_of(self.workers[worker], "pushes", server),
            rows_of(self.servers[server], "arrivals", worker),
        )
        assert len(sent) == len(arrivals), "the server receives each gradient that a worker sends"
        step, start, posted, arrived = (column(sent, 1), column(sent, 3), column(arrivals, 3), column(arrivals, 4))
        began = np.maximum(start, posted)
        kept = (began if self.fifo else start) <= self.ends[server]
        self.left_out[worker, server] += int((~kept).sum())
        arrived = np.where(kept, np.maximum(arrived, start), math.nan)
        self.builder.push(
            worker, server, step, self.num_bytes,
            start - self.zero, arrived - self.zero, np.minimum(began, arrived) - self.zero,
        )  # fmt: skip

    def pulls(self, worker: int, server: int) -> None:
        """A server's answers on their way to a worker."""
        starts, steps = self.began(worker)
        received = rows_of(self.workers[worker], "pulls", server)
        answers = rows_of(self.servers[server], "answers", worker)
        # Answers that only stop a worker after the last update have no row at the server.
        count = min(len(received), len(answers))
        asked, start, ended = (
            column(rows[:count], place) for rows, place in ((answers, 2), (answers, 3), (received, 2))
        )
        step = np.array(steps)[np.searchsorted(starts, ended) - 1]
        asked = np.where(np.isnan(asked), start, asked)
        ended = np.maximum(start, ended)
        if self.scenario.host(server) == worker:
            start, ended = ended, np.full(len(ended), math.nan)  # nothing is sent, and all of it is waiting
        else:
            self.left_out[server, worker] += len(received) - len(answers)
        self.builder.pull(worker, server, step, self.num_bytes, asked - self.zero, start - self.zero, ended - self.zero)

    def began(self, worker: int) -> tuple[list[float], list[int]]:
        """When a worker began its steps, and which they were."""
        record = self.workers[worker]
        rows = record.rows("forwards") or record.rows("computes")
        return [row[-2] for row in rows], [int(row[0]) for row in rows]


def rows_of(record: Record, table: str, rank: int) -> list[list[float]]:
    """The rows of a table that begin with this rank."""
    return [row for row in record.rows(table) if row[0] == rank]


def column(rows: list[list[float]], place: int) -> Floats:
    """One column of a table's rows."""
    return np.array([row[place] for row in rows], dtype=np.float64)
