"""Merges the records of workers that sum among themselves, in the words of `engine.peers`.

The back end's own all-reduce shows no transfers, so there are none in the trace. The transfers of a schedule are: each
lasts from the moment at which both ranks are ready (with eager sends, the source alone) until the target has the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from distsim.collectives import Schedule
from distsim.errors import RunError
from distsim.groups import ALL_REDUCE, GroupExchange
from distsim.runtime.recording.merge.computes import tell_computes
from distsim.runtime.recording.recorder import Record
from distsim.scenario import Scenario
from distsim.trace import SpanKind, TraceBuilder
from distsim.workload import FLOAT_BYTES

Shape = tuple[int, int]  # of an all-reduce: how many numbers, and the bytes of each


class PeersMerge:
    """The trace of synchronous training, or of local SGD."""

    def __init__(self, records: list[Record], scenario: Scenario, zero: float) -> None:
        workers = scenario.cluster.workers
        self.records, self.scenario, self.zero = records, scenario, zero
        self.builder = TraceBuilder()
        tell_computes(self.builder, records[:workers], zero)
        period = scenario.policy.steps_per_update
        num_bytes = float(records[0].facts["num_bytes"])
        for call, arrivals, ends in all_reduces(records[:workers], zero):
            steps = range(call * period, min((call + 1) * period, scenario.steps))
            tell_all_reduce(self.builder, steps[-1], num_bytes, arrivals, ends, idle_from=arrivals)
            for worker in range(workers):
                for step in steps:
                    self.builder.applied(call + 1, worker, step, read_version=call)
            self.builder.update(call + 1, max(ends))
        tell_transfers(self.builder, records, scenario, [(int(num_bytes) // FLOAT_BYTES, FLOAT_BYTES)], zero)


def all_reduces(
    records: Sequence[Record], zero: float, exchanges: Sequence[GroupExchange] = (ALL_REDUCE,)
) -> Iterator[tuple[int, list[float], list[float]]]:
    """Each all-reduce: its number, when each worker joined, and when each worker had the sum.

    exchanges: those of one step, which follow each other in turn.
    """
    for rows in zip(*(sorted(record.rows("all_reduces")) for record in records), strict=True):
        call, arrivals = int(rows[0][0]), [row[1] - zero for row in rows]
        last = exchanges[call % len(exchanges)].last(np.array(arrivals)).tolist()
        # No worker has the sum before the last one arrives, but for the noise of reading clocks.
        yield call, arrivals, [max(row[2] - zero, joined) for row, joined in zip(rows, last, strict=True)]


def tell_all_reduce(
    builder: TraceBuilder, step: int, num_bytes: float, arrivals: list[float], ends: list[float],
    idle_from: list[float], label: str = "", exchange: GroupExchange = ALL_REDUCE, workers: range | None = None,
) -> None:  # fmt: skip
    """The spans of an all-reduce, or of another `exchange`.

    A worker waits from idle_from[worker] until the last worker of its group has arrived. workers: those that joined,
    whole groups of them; None: all.
    """
    joined, kind = exchange.last(np.array(arrivals)).tolist(), SpanKind[exchange.kind.upper()]
    for worker in workers or range(len(joined)):
        idle, last, end = idle_from[worker], joined[worker], ends[worker]
        if last > idle:
            builder.span(worker, SpanKind.WAIT, step, idle, last, label=label)
        builder.span(worker, kind, step, last, end, num_bytes, label)


def tell_transfers(
    builder: TraceBuilder, records: Sequence[Record], scenario: Scenario, shapes: Sequence[Shape], zero: float,
    exchanges: Sequence[GroupExchange] = (),
) -> None:  # fmt: skip
    """The transfers of all calls of the scenario's schedules, and the spans in which its servers send and receive.

    shapes: of the calls; several shapes follow each other in turn. exchanges: of the same calls; by default all are
    all-reduces.
    """
    workers, eager = scenario.cluster.workers, scenario.communication.sends == "eager"
    schedules = [scenario.schedule(exchange) for exchange in exchanges or [ALL_REDUCE] * len(shapes)]
    for carried in carried_by(schedules, records, shapes, eager=eager):
        source, target, start, end = carried.source, carried.target, carried.start - zero, carried.end - zero
        builder.transfer(source, target, carried.num_bytes, start, end, carried.chunk, carried.call)
        if target >= workers:
            label = f"from worker {source}"
            builder.span(target, SpanKind.RECEIVE, carried.call, start, end, carried.num_bytes, label)
        if source >= workers:
            builder.span(source, SpanKind.SEND, carried.call, start, end, carried.num_bytes, f"to worker {target}")


class Carried(NamedTuple):
    """A transfer that took place. start, end: seconds of the monotonic clock."""

    call: int
    source: int
    target: int
    chunk: int
    num_bytes: float
    start: float
    end: float


def carried_by(
    schedules: Sequence[Schedule], records: Sequence[Record], shapes: Sequence[Shape], *, eager: bool
) -> Iterator[Carried]:
    """The transfers of all calls, by call and number. Source and target have each recorded a row.

    schedules, shapes: of the calls, which follow each other in turn.
    """
    turns = [
        ([transfer for _, transfer in schedule.transfers()], schedule.chunk_bounds(numbers), number_bytes)
        for schedule, (numbers, number_bytes) in zip(schedules, shapes, strict=True)
    ]
    left, came = _by_transfer(records, "sends"), _by_transfer(records, "receives")
    if left.keys() != came.keys():
        call, number = min(left.keys() ^ came.keys())
        raise RunError(f"transfer {number} of all-reduce {call} was seen by only one of its two ranks")
    for (call, number), posted in sorted(left.items()):
        transfers, begins, number_bytes = turns[call % len(turns)]
        transfer, (ready, end) = transfers[number], came[call, number]
        numbers = begins[transfer.chunk + transfer.chunks] - begins[transfer.chunk]
        start = posted[0] if eager else max(posted[0], ready)
        yield Carried(
            call, transfer.source, transfer.target, transfer.chunk, float(numbers * number_bytes),
            min(start, end), end,
        )  # fmt: skip


def _by_transfer(records: Sequence[Record], table: str) -> dict[tuple[int, int], tuple[float, float]]:
    """(call, number) -> (posted, end), of all ranks together."""
    return {
        (int(call), int(number)): (posted, end)
        for record in records
        for call, number, posted, end in record.rows(table)
    }
