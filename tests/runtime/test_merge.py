"""Records of ranks, made by hand, become the trace they describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distsim import RunError, Scenario, Trace
from distsim.runtime.recording.merge import merge
from distsim.runtime.recording.recorder import Recorder
from distsim.trace import SpanKind, violations

ZERO = 1000.0
NUM_BYTES = 4096
VERSIONS = {"python": "3", "torch": "2"}


def scenario(policy: dict[str, Any], kind: str = "parameter_server", steps: int = 1) -> Scenario:
    return Scenario.of(
        {
            "steps": steps,
            "cluster": {"workers": 2, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"mean": "10 ms"},
            "workload": {"gradient": "4 KiB", "batch": 1},
            "policy": policy,
            "communication": {"kind": kind},
        }
    )


Tables = dict[str, list[tuple[float, ...]]]


def merged(
    folder: Path, what: Scenario, *ranks: Tables, falsify: Callable[[list[Recorder]], None] | None = None
) -> Trace:
    """The trace of rows whose times count from ZERO, which is when the last rank has left the barrier.

    Every rank has counted what its rows say, except for what `falsify` changes.
    """
    recorders = [Recorder() for _ in ranks]
    for rank, (recorder, tables) in enumerate(zip(recorders, ranks, strict=True)):
        recorder.facts |= {
            "left_barrier": ZERO - 0.001 * rank,
            "num_bytes": NUM_BYTES,
            "versions": VERSIONS,
            "host": {},
            "apply_seconds": 0.25 if "updates" in tables else None,
            "counts": {
                "applied": len(tables.get("applied", [])),
                "dropped": len(tables.get("dropped", [])),
                "staleness": sum(version - 1 - read for version, _, _, read in tables.get("applied", [])),
            },
        }
        for table, rows in tables.items():
            for row in rows:
                recorder.table(table)(row)
        for way, table, count in (("out", "pushes", recorder.tally.sent), ("in", "pulls", recorder.tally.received)):
            for row in tables.get(table, []):
                server = int(row[0])
                if what.host(server) == rank:
                    continue
                count(server, NUM_BYTES)
                at_server = recorders[server].tally
                (at_server.received if way == "out" else at_server.sent)(rank, NUM_BYTES)
    if falsify is not None:
        falsify(recorders)
    for rank, recorder in enumerate(recorders):
        recorder.save(folder, 0, rank)
    return merge(folder, 0, what)


def spans(trace: Trace, worker: int) -> list[tuple[str, int, float, float]]:
    own = trace.spans.where(trace.spans.worker == worker).to_pandas()
    return [
        (str(row.kind), int(row.step), round(row.start_seconds, 6), round(row.end_seconds, 6))
        for row in own.itertuples()
    ]


def test_peers_wait_for_the_last_and_time_counts_from_the_last_to_leave_the_barrier(tmp_path: Path) -> None:
    trace = merged(
        tmp_path,
        scenario({"kind": "synchronous"}, "ring"),
        {"computes": [(0, 0, ZERO, ZERO + 2)], "all_reduces": [(0, ZERO + 2, ZERO + 6)], "exchange_work": [(0, 0.5)]},
        {"computes": [(0, 0, ZERO, ZERO + 5)], "all_reduces": [(0, ZERO + 5, ZERO + 7)], "exchange_work": [(0, 1.5)]},
    )
    assert trace.metadata["exchange_core_seconds"] == [1.0]
    assert spans(trace, 0) == [("compute", 0, 0, 2), ("wait", 0, 2, 5), ("all_reduce", 0, 5, 6)]
    assert spans(trace, 1) == [("compute", 0, 0, 5), ("all_reduce", 0, 5, 7)]
    assert trace.total_seconds == 7
    assert len(trace.transfers) == 0
    assert trace.metadata["clock"]["start_spread_seconds"] == pytest.approx(0.001)


SYNCHRONOUS_RANKS = (
    {
        "computes": [(0, 0, ZERO, ZERO + 2)],
        "pushes": [(2, 0, 0, ZERO + 2, ZERO + 3)],
        "pulls": [(2, 1, ZERO + 9)],
    },
    {
        "computes": [(0, 0, ZERO, ZERO + 5)],
        "pushes": [(2, 0, 0, ZERO + 5, ZERO + 5.5)],
        "pulls": [(2, 1, ZERO + 8)],
    },
    {
        "arrivals": [(0, 0, 0, ZERO - 1, ZERO + 3), (1, 0, 0, ZERO + 5.5, ZERO + 6)],
        "updates": [(1, ZERO + 6, ZERO + 6.5)],
        "applied": [(1, 0, 0, 0), (1, 1, 0, 0)],
        "answers": [(0, 1, ZERO + 3, ZERO + 7), (1, 1, ZERO + 6, ZERO + 6.5)],
    },
)


def test_a_push_lasts_from_the_workers_clock_to_the_servers_and_an_answer_back(tmp_path: Path) -> None:
    trace = merged(tmp_path, scenario({"kind": "synchronous"}), *SYNCHRONOUS_RANKS)
    assert violations(trace) == []
    assert spans(trace, 0) == [("compute", 0, 0, 2), ("send", 0, 2, 3), ("wait", 0, 3, 7), ("receive", 0, 7, 9)]
    assert spans(trace, 1) == [("compute", 0, 0, 5), ("send", 0, 5, 6), ("wait", 0, 6, 6.5), ("receive", 0, 6.5, 8)]
    server = spans(trace, 2)
    assert ("apply", 0, 6, 6.5) in server
    assert ("receive", 0, 5.5, 6) in server, "the server turned to it later than it was sent"
    assert ("receive", 0, 2, 3) in server, "the server was ready for it before it was sent"
    assert trace.transfers.bytes.tolist() == [NUM_BYTES] * 4
    assert trace.metadata["warm_up"] == {"apply_seconds": 0.25}


def test_clocks_read_in_the_wrong_order_make_no_message_that_ends_before_it_starts(tmp_path: Path) -> None:
    """A rank that was interrupted between an event and its reading of the clock tells it too late."""
    late = ZERO + 3.001  # the worker says it began to send then; the server has had the gradient since 3
    ranks = (
        SYNCHRONOUS_RANKS[0] | {"pushes": [(2, 0, 0, late, ZERO + 3.002)], "pulls": [(2, 1, ZERO + 6.999)]},
        *SYNCHRONOUS_RANKS[1:],
    )
    trace = merged(tmp_path, scenario({"kind": "synchronous"}), *ranks)
    assert violations(trace) == []
    assert ("send", 0, 3.001, 3.001) in spans(trace, 0)
    assert ("receive", 0, 7, 7) in spans(trace, 0), "its answer left the server after it says it had it"


def lose_a_message_at_the_server(recorders: list[Recorder]) -> None:
    recorders[2].tally._received[1][0] -= 1


def lose_bytes_at_the_worker(recorders: list[Recorder]) -> None:
    recorders[0].tally._received[2][1] -= 4


def count_an_answer_that_nobody_recorded(recorders: list[Recorder]) -> None:
    recorders[2].tally.sent(1, NUM_BYTES)
    recorders[1].tally.received(2, NUM_BYTES)


def forget_an_update(recorders: list[Recorder]) -> None:
    recorders[2].facts["counts"]["applied"] -= 1


def drop_one(recorders: list[Recorder]) -> None:
    recorders[2].facts["counts"]["dropped"] += 1


def be_stale(recorders: list[Recorder]) -> None:
    recorders[2].facts["counts"]["staleness"] += 1


@pytest.mark.parametrize(
    ("falsify", "words"),
    [
        (
            lose_a_message_at_the_server,
            "from worker 1 to server 2, its source sent 1 messages, but its target received 0",
        ),
        (
            lose_bytes_at_the_worker,
            "from server 2 to worker 0, its source sent 4096 bytes, but its target received 4092",
        ),
        (count_an_answer_that_nobody_recorded, "server 2 to worker 1, the trace says 4096 bytes, but .* counted 8192"),
        (forget_an_update, "at server 2, the trace says 2 gradients applied, but the server counted 1"),
        (drop_one, "at server 2, the trace says 0 gradients dropped, but the server counted 1"),
        (be_stale, "at server 2, the trace says 0 versions of staleness, but the server counted 1"),
    ],
)
def test_a_count_that_differs_is_an_error(
    tmp_path: Path, falsify: Callable[[list[Recorder]], None], words: str
) -> None:
    with pytest.raises(RunError, match=f"the counts of the run disagree: .*{words}"):
        merged(tmp_path, scenario({"kind": "synchronous"}), *SYNCHRONOUS_RANKS, falsify=falsify)


def miscount_the_calls(recorders: list[Recorder]) -> None:
    recorders[1].facts["reduced"] = {"calls": 2, "bytes": NUM_BYTES}


def miscount_the_bytes(recorders: list[Recorder]) -> None:
    recorders[1].facts["reduced"] = {"calls": 1, "bytes": NUM_BYTES - 4}


def count_a_message_that_no_schedule_has(recorders: list[Recorder]) -> None:
    recorders[0].tally.sent(1, NUM_BYTES)
    recorders[1].tally.received(0, NUM_BYTES)


@pytest.mark.parametrize(
    ("falsify", "words"),
    [
        (miscount_the_calls, "worker 1 counted 2 calls of all-reduces, but the trace shows 1"),
        (miscount_the_bytes, f"worker 1 counted {NUM_BYTES - 4} bytes of all-reduces, but the trace shows {NUM_BYTES}"),
        (count_a_message_that_no_schedule_has, "from worker 0 to worker 1, the trace says 0 bytes, but .* counted"),
    ],
)
def test_a_count_of_peers_that_differs_is_an_error(
    tmp_path: Path, falsify: Callable[[list[Recorder]], None], words: str
) -> None:
    ranks = {"computes": [(0, 0, ZERO, ZERO + 2)], "all_reduces": [(0, ZERO + 2, ZERO + 6)]}
    with pytest.raises(RunError, match=f"the counts of the run disagree: .*{words}"):
        merged(tmp_path, scenario({"kind": "synchronous"}, "ring"), ranks, ranks, falsify=falsify)


def test_a_cancelled_step_ends_when_its_answer_leaves_the_server(tmp_path: Path) -> None:
    trace = merged(
        tmp_path,
        scenario({"kind": "backup", "backups": 1, "cancel": True}),
        {"computes": [(0, 0, ZERO, ZERO + 2)], "pushes": [(2, 0, 0, ZERO + 2, ZERO + 3)], "pulls": [(2, 1, ZERO + 4)]},
        {"computes": [(0, 0, ZERO, ZERO + 6)], "pulls": [(2, 1, ZERO + 6)]},
        {
            "arrivals": [(0, 0, 0, ZERO, ZERO + 3)],
            "updates": [(1, ZERO + 3, ZERO + 3.25)],
            "applied": [(1, 0, 0, 0)],
            "cancelled": [(1, 0)],
            "answers": [(0, 1, ZERO + 3, ZERO + 3.25), (1, 1, math.nan, ZERO + 3.5)],
        },
    )
    assert violations(trace) == []
    assert spans(trace, 1) == [("compute", 0, 0, 3.5), ("receive", 0, 3.5, 6)]
    assert trace.contributions.cancelled.tolist() == [False, True]


def test_a_push_after_the_last_update_is_no_part_of_the_run(tmp_path: Path) -> None:
    trace = merged(
        tmp_path,
        scenario({"kind": "backup", "backups": 1}),
        {"computes": [(0, 0, ZERO, ZERO + 2)], "pushes": [(2, 0, 0, ZERO + 2, ZERO + 3)], "pulls": [(2, 1, ZERO + 5)]},
        {"computes": [(0, 0, ZERO, ZERO + 6)], "pushes": [(2, 0, 0, ZERO + 6, ZERO + 7)], "pulls": [(2, 1, ZERO + 8)]},
        {
            "arrivals": [(0, 0, 0, ZERO, ZERO + 3), (1, 0, 0, ZERO, ZERO + 7)],
            "updates": [(1, ZERO + 3, ZERO + 4)],
            "applied": [(1, 0, 0, 0)],
            "answers": [(0, 1, ZERO + 3, ZERO + 4)],
        },
    )
    assert violations(trace) == []
    assert spans(trace, 1) == [("compute", 0, 0, 6)]
    assert len(trace.contributions) == 1
    assert trace.total_seconds == 4


def test_an_answer_that_a_newer_one_overtakes_belongs_to_the_step_before(tmp_path: Path) -> None:
    trace = merged(
        tmp_path,
        scenario({"kind": "backup", "backups": 1, "cancel": True}, steps=2),
        {
            "computes": [(0, 0, ZERO, ZERO + 1), (1, 1, ZERO + 3, ZERO + 4)],
            "pushes": [(2, 0, 0, ZERO + 1, ZERO + 2), (2, 1, 1, ZERO + 4, ZERO + 5)],
            "pulls": [(2, 1, ZERO + 3), (2, 2, ZERO + 6)],
        },
        {
            "computes": [(0, 0, ZERO, ZERO + 1.5)],
            "pushes": [(2, 0, 0, ZERO + 1.5, ZERO + 7)],
            "pulls": [(2, 1, ZERO + 5), (2, 2, ZERO + 6)],
        },
        {
            "arrivals": [(0, 0, 0, ZERO, ZERO + 2), (0, 1, 1, ZERO, ZERO + 5), (1, 0, 0, ZERO, ZERO + 7)],
            "updates": [(1, ZERO + 2, ZERO + 2.5), (2, ZERO + 5, ZERO + 5.5)],
            "applied": [(1, 0, 0, 0), (2, 0, 1, 1)],
            "cancelled": [(1, 0), (1, 1)],
            "answers": [
                (0, 1, ZERO + 2, ZERO + 2.5), (1, 1, math.nan, ZERO + 2.5),
                (0, 2, ZERO + 5, ZERO + 5.5), (1, 2, math.nan, ZERO + 5.5),
            ],
        },
    )  # fmt: skip
    assert violations(trace) == []
    received = trace.spans.of_kind(SpanKind.RECEIVE)
    assert received.step[received.worker == 1].tolist() == [0, 0]
    assert int(trace.contributions.cancelled.sum()) == 1, "the worker never began the second step"
