"""The trace of a run that failed: the records of its ranks until then, and the last activity of each rank.

The trace holds only events that one rank saw by itself, since the other side of a message may be missing. The last span
of a rank that had not finished is WAIT where the rank waited for others, otherwise LOST. Its label is the activity.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import distsim
from distsim.pipeline_stages import stages_of
from distsim.policies import Ddp, Pipeline, Programmed
from distsim.runtime.recording import rank_status
from distsim.runtime.recording.merge.failures import joined
from distsim.runtime.recording.rank_status import State, Status
from distsim.runtime.recording.recorder import Row
from distsim.runtime.roles import roles
from distsim.scenario import Scenario
from distsim.trace import FOR_ANOTHER, SpanKind, Trace, TraceBuilder

Tables = dict[str, list[Row]]


def partial_trace(folder: Path, scenarios: Sequence[Scenario]) -> Trace | None:
    """The trace of the last scenario whose clock had started; None where none had.

    Its metadata say "complete": false.
    """
    now = time.monotonic()
    for number, scenario in reversed(list(enumerate(scenarios))):
        records = joined(folder, number, len(roles(scenario)))
        left = [tables["left"][0][0] for tables in records if tables["left"]]
        if left:
            told = PartialTrace(records, scenario, max(left))
            for slot in rank_status.read(folder):
                told.standing(slot, now)
            return told.builder.build(
                workers=scenario.cluster.workers,
                servers=len(scenario.servers),
                producer="measured",
                scenario=scenario.table(),
                seed=scenario.seed,
                versions={"distsim": distsim.__version__},
                complete=False,
            )
    return None


class PartialTrace:
    """The rows of the trace. zero: when its clock starts, in seconds of the monotonic clock."""

    def __init__(self, records: Sequence[Tables], scenario: Scenario, zero: float) -> None:
        self.builder = TraceBuilder()
        self._scenario = scenario
        self._zero = zero
        policy, workload, workers = scenario.policy, scenario.workload, scenario.cluster.workers
        self._program = policy.program(workload, workers) if isinstance(policy, Programmed) else None
        self._exchanges: list[tuple[str, str]] = []  # of a step: the kind and the label of each
        if self._program is not None:
            self._exchanges = [(one.kind, self._program.label(one)) for one in self._program.exchanges]
        elif isinstance(policy, Pipeline):
            self._exchanges = [(one.exchange.kind, one.label) for one in stages_of(policy, workload, workers).calls]
        for rank, tables in enumerate(records):
            self._computing(rank, tables)
            self._talking(rank, tables)
            self._serving(rank, tables)
        if not scenario.server_decides and not isinstance(scenario.policy, (Ddp, Pipeline, Programmed)):
            self._sums(records[: scenario.cluster.workers])

    def _span(self, rank: int, kind: SpanKind, step: float, start: float, end: float, label: str = "") -> None:
        self.builder.span(rank, kind, int(step), start - self._zero, max(start, end) - self._zero, label=label)

    def _computing(self, rank: int, tables: Tables) -> None:
        for step, _, start, end in tables["computes"]:
            self._span(rank, SpanKind.COMPUTE, step, start, end)
        for table, kind in (("forwards", SpanKind.FORWARD), ("backwards", SpanKind.BACKWARD)):
            for step, start, end in tables[table]:
                self._span(rank, kind, step, start, end)
        if self._program is not None:
            for step, number, start, end in tables["computations"]:
                piece = self._program.computations[int(number)]
                self._span(rank, SpanKind[piece.kind.upper()], step, start, end, self._program.label(piece))
        for step, micro, backward, start, end in tables["passes"]:
            kind = SpanKind.BACKWARD if backward else SpanKind.FORWARD
            self._span(rank, kind, step, start, end, f"micro-batch {micro:.0f}")
        for worker, step, item, _, _, start, end in tables["pieces"]:
            whose = "" if worker == rank else f"{FOR_ANOTHER} {worker:.0f}, "
            self._span(rank, SpanKind.COMPUTE, step, start, end, f"{whose}item {item:.0f}")

    def _talking(self, rank: int, tables: Tables) -> None:
        for call, arrival, end in tables["all_reduces"]:
            kind, of_step, label = self._exchange(int(call))
            self._span(rank, kind, of_step, arrival, end, label)
        for server, step, _, start, end in tables["pushes"]:
            self._span(rank, SpanKind.SEND, step, start, end, f"to server {server:.0f}")

    def _exchange(self, call: int) -> tuple[SpanKind, int, str]:
        """What call number `call` of a run is: its kind, its step and its label."""
        if not self._exchanges:
            return SpanKind.ALL_REDUCE, call, ""
        step, number = divmod(call, len(self._exchanges))
        kind, label = self._exchanges[number]
        return SpanKind[kind.upper()], step, label

    def _serving(self, rank: int, tables: Tables) -> None:
        for worker, step, _, posted, end in tables["arrivals"]:
            self._span(rank, SpanKind.RECEIVE, step, posted, end, f"from worker {worker:.0f}")
        for version, begin, end in tables["updates"]:
            self._span(rank, SpanKind.APPLY, version - 1, begin, end)
            self.builder.update(int(version), end - self._zero, rank)
        for version, worker, step, read_version in tables["applied"]:
            self.builder.applied(int(version), int(worker), int(step), int(read_version), rank)
        for worker, step, read_version in tables["dropped"]:
            self.builder.not_applied(int(worker), int(step), int(read_version), cancelled=False, server=rank)

    def _sums(self, workers: Sequence[Tables]) -> None:
        """The updates of peers: the sums that all workers have."""
        period, steps = self._scenario.policy.steps_per_update, self._scenario.steps
        for call, sums in enumerate(zip(*(tables["all_reduces"] for tables in workers), strict=False)):
            for worker in range(len(workers)):
                for step in range(call * period, min((call + 1) * period, steps)):
                    self.builder.applied(call + 1, worker, step, read_version=call)
            self.builder.update(call + 1, max(end for _, _, end in sums) - self._zero)

    def standing(self, slot: Status, now: float) -> None:
        """Adds a rank's activity at `now`, when the run ended."""
        if slot.state is State.RUNNING:
            kind = SpanKind.WAIT if slot.waiting else SpanKind.LOST
            self._span(slot.rank, kind, 0, max(slot.since_seconds, self._zero), now, slot.activity)
