"""Traces as Chrome trace events: what Perfetto and chrome://tracing need to show them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distsim.trace import Contributions, SpanKind, Spans, Trace, TraceBuilder, Transfers, Updates, chrome

RANKS = st.integers(0, 3)
METADATA = {"producer": "simulated", "workers": 3, "servers": 1}
EMPTY = Trace(Spans.empty(), Updates.empty(), Contributions.empty(), Transfers.empty(), METADATA)


def one_step(producer: str = "simulated") -> Trace:
    """One step of backup training: the server answers workers 0 and 1 while it still receives from worker 2."""
    builder = TraceBuilder()
    for worker, end in ((0, 1.0), (1, 1.5), (2, 2.4)):
        builder.span(worker, SpanKind.COMPUTE, 0, 0.0, end)
    builder.push(0, 3, 0, 4e6, 1.0, 1.7)
    builder.push(1, 3, 0, 4e6, 1.5, 2.0)
    builder.applied(1, 0, 0, read_version=0, server=3)
    builder.applied(1, 1, 0, read_version=0, server=3)
    builder.update(1, 2.0, server=3)
    builder.pull(0, 3, 0, 4e6, asked_seconds=1.7, start_seconds=2.0, end_seconds=2.8)
    builder.pull(1, 3, 0, 4e6, asked_seconds=2.0, start_seconds=2.0, end_seconds=2.8)
    builder.push(2, 3, 0, 4e6, 2.4, 3.0)
    builder.not_applied(2, 0, read_version=0, cancelled=False, server=3)
    return builder.build(3, 1, producer)


def refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def events(trace: Trace) -> list[dict[str, Any]]:
    document = json.loads(chrome.dumps(trace), parse_constant=refuse)
    assert document["displayTimeUnit"] in ("ms", "ns")
    return document["traceEvents"]


moments = st.floats(0.0, 1e4, allow_subnormal=False)
busy_traces = st.lists(st.tuples(RANKS, st.sampled_from(SpanKind), moments, st.floats(0.0, 10.0)), max_size=40).map(
    lambda rows: Trace(
        Spans.of_rows((rank, kind, 0, start, start + length, 0.0, "") for rank, kind, start, length in rows),
        *(EMPTY.updates, EMPTY.contributions),
        Transfers.of_rows((rank, (rank + 1) % 4, 1.0, start, start + length, 0, -1) for rank, _, start, length in rows),
        METADATA,
    )
)


@given(trace=busy_traces)
@example(trace=one_step())
@example(trace=EMPTY)
def test_events_have_what_the_format_requires(trace: Trace) -> None:
    for event in events(trace):
        assert {"ph", "pid", "tid", "name"} <= event.keys()
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        match event["ph"]:
            case "M":
                assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
                assert {"name", "sort_index"} & event["args"].keys()
                continue
            case "X":
                assert event["dur"] >= 0
            case "i":
                assert event["s"] in ("g", "p", "t")
            case "b" | "e":
                assert {"id", "cat"} <= event.keys()
            case other:
                pytest.fail(f"phase {other}")
        assert event["ts"] >= 0


@given(trace=busy_traces)
@example(trace=one_step())
def test_complete_events_of_one_thread_do_not_overlap(trace: Trace) -> None:
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events(trace):
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for own in threads.values():
        own.sort(key=lambda event: (event["args"]["start_seconds"], event["args"]["end_seconds"]))
        for one, other in pairwise(own):
            assert one["args"]["end_seconds"] <= other["args"]["start_seconds"]
            assert one["ts"] + one["dur"] <= other["ts"] * (1 + 1e-12) + 1e-3  # a nanosecond: viewers round to one
    assert sum(map(len, threads.values())) == len(trace.spans)


@given(trace=busy_traces)
@example(trace=one_step())
def test_transfers_are_pairs_of_events(trace: Trace) -> None:
    begun: dict[tuple[str, int], dict[str, Any]] = {}
    ended = 0
    for event in events(trace):
        if event["ph"] == "b":
            assert (event["cat"], event["id"]) not in begun
            begun[event["cat"], event["id"]] = event
        elif event["ph"] == "e":
            begin = begun[event["cat"], event["id"]]
            assert begin["ts"] <= event["ts"]
            assert all(begin[key] == event[key] for key in ("cat", "id", "name", "pid", "tid"))
            ended += 1
    assert ended == len(begun) == len(trace.transfers)


def test_events_carry_microseconds_names_and_exact_values() -> None:
    found = events(one_step())
    compute = next(event for event in found if event["name"] == "compute" and event["args"]["worker"] == 1)
    assert (compute["ts"], compute["dur"]) == (0.0, 1.5e6)
    assert compute["args"]["end_seconds"] == 1.5
    threads = {event["args"]["name"] for event in found if event["name"] == "thread_name"}
    assert threads == {"worker 0", "worker 1", "worker 2", "server 3"}
    assert {event["name"] for event in found if event["ph"] == "b"} >= {"worker 2 to server 3", "server 3 to worker 0"}
    gradients = [event for event in found if event.get("cat") == "contributions"]
    assert [event["ts"] for event in gradients] == [2e6, 2e6, 0.0]


def test_tracks_are_named_alike_for_simulated_and_measured_runs() -> None:
    def tracks(trace: Trace) -> list[Any]:
        return [(event["tid"], event["args"]) for event in events(trace) if event["name"].startswith("thread")]

    assert tracks(one_step("simulated")) == tracks(one_step("measured"))
