"""The records of workers and a server become rows of a trace.

A push lasts from the worker's clock to the server's, and an answer from the server's to the worker's: all processes
share one clock.

A cancelled step counts as compute until the answer that cancels it leaves the server. Its worker learns of it when that
has arrived, and what it slept in between served nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from distsim.errors import RunError
from distsim.runtime.recorder import Record
from distsim.scenario import Scenario
from distsim.trace import SpanKind, TraceBuilder


class ServerMerge:
    """The trace of workers and a server. A worker's first message here is its first message there, and so on."""

    def __init__(self, records: list[Record], scenario: Scenario, zero: float) -> None:
        (self.server,) = scenario.servers
        self.workers, self.record = records[: self.server], records[self.server]
        self.zero = zero
        self.builder = TraceBuilder()
        self.num_bytes = float(self.record.facts["num_bytes"])
        self.last_update = self.record.rows("updates")[-1][2]
        self._updates()
        for worker, record in enumerate(self.workers):
            self._computes(worker, record)
            self._pushes(worker, record)
            self._pulls(worker, record)
        self._check_bytes()

    def _of(self, table: str, worker: int) -> list[list[float]]:
        return [row for row in self.record.rows(table) if row[0] == worker]

    def _updates(self) -> None:
        for version, begin, end in self.record.rows("updates"):
            self.builder.span(self.server, SpanKind.APPLY, int(version) - 1, begin - self.zero, end - self.zero)
            self.builder.update(int(version), end - self.zero, self.server)
        for version, worker, step, read_version in self.record.rows("applied"):
            self.builder.applied(int(version), int(worker), int(step), int(read_version), self.server)
        for worker, step, read_version in self.record.rows("dropped"):
            self.builder.not_applied(int(worker), int(step), int(read_version), cancelled=False, server=self.server)

    def _computes(self, worker: int, record: Record) -> None:
        cancelled = {read_version for _, read_version in self._of("cancelled", worker)}
        told = {version: start for _, version, _, start in self._of("answers", worker)}
        for step, read_version, start, end in record.rows("computes"):
            if read_version in cancelled:
                self.builder.not_applied(worker, int(step), int(read_version), cancelled=True, server=self.server)
                answer = min(at for version, at in told.items() if version > read_version)
                end = min(end, max(start, answer))
            self.builder.span(worker, SpanKind.COMPUTE, int(step), start - self.zero, end - self.zero)

    def _pushes(self, worker: int, record: Record) -> None:
        rows = zip(record.rows("pushes"), self._of("arrivals", worker), strict=True)
        for (step, _, start, _), (_, _, _, posted, arrived) in rows:
            if start > self.last_update:
                continue  # the run was over; this one only ended the worker
            arrived = max(arrived, start)
            self.builder.push(
                worker, self.server, int(step), self.num_bytes,
                start - self.zero, arrived - self.zero, began_seconds=min(max(start, posted), arrived) - self.zero,
            )  # fmt: skip

    def _pulls(self, worker: int, record: Record) -> None:
        computes = record.rows("computes")
        starts = [start for _, _, start, _ in computes]
        # Answers that only stop a worker after the last update have no row at the server.
        for (_, ended), (_, _, asked, start) in zip(record.rows("pulls"), self._of("answers", worker), strict=False):
            step = computes[bisect_left(starts, ended) - 1][0]
            asked = start if math.isnan(asked) else asked
            self.builder.pull(
                worker, self.server, int(step), self.num_bytes,
                asked - self.zero, start - self.zero, max(start, ended) - self.zero,
            )  # fmt: skip

    def _check_bytes(self) -> None:
        """What the server says it received must be what the workers say they sent."""
        sent = sum(len(record.rows("pushes")) * float(record.facts["num_bytes"]) for record in self.workers)
        received = float(self.record.facts["received_bytes"])
        if sent != received:
            raise RunError(
                f"server {self.server} received {received:.0f} bytes of gradients, but workers sent {sent:.0f}"
            )
