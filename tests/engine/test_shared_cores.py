"""Ranks of one machine share its cores: by hand, within bounds that no run can leave, and equal where none lack."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.cores import Cores
from distsim.engine import selection, story
from distsim.errors import InputError
from distsim.profile import CoreSeconds, Layer, Profile
from distsim.scenario import Scenario
from distsim.trace import SpanKind, Trace, violations

STEPS = 3
NOTHING = 1e-9  # seconds drawn for a step, which cannot be 0
FREE = 1e6  # cores that are never all taken


def scenario(workers: int, policy: dict[str, Any], gradient: str = "4 B", **cluster: str) -> Scenario:
    return Scenario.of(
        {
            "steps": STEPS,
            "cluster": {"workers": workers, "bandwidth": "1 TB/s", "latency": "0 s"} | cluster,
            "compute": {"mean": f"{NOTHING} s"},
            "workload": {"gradient": gradient, "layers": 4},
            "policy": policy,
            "communication": {"kind": "ring"},
        }
    )


SYNCHRONOUS = {"kind": "synchronous"}
ONE_BUCKET, FOUR_BUCKETS = ({"kind": "ddp", "bucket": size, "first_bucket": size} for size in ("1 GB", "1 B"))
POLICIES = [SYNCHRONOUS, {"kind": "local_sgd", "period": 2}, ONE_BUCKET, FOUR_BUCKETS]


def run(one: Scenario, cores: Cores) -> Trace:
    trace = story.run(one, cores=cores)
    assert violations(trace) == []
    return trace


@pytest.mark.parametrize(("workers", "step_seconds"), [(1, 0.01), (2, 0.01), (3, 0.015), (4, 0.02)])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_worker_computes_on_one_core_at_most_and_all_on_the_machines(
    policy: dict[str, Any], workers: int, step_seconds: float
) -> None:
    """10 ms of a core per worker and step, on two cores."""
    trace = run(scenario(workers, policy), Cores(capacity=2.0, step_seconds=0.01))
    assert trace.total_seconds == pytest.approx(STEPS * step_seconds, rel=1e-5)


def test_workers_of_one_batch_share_its_work() -> None:
    one = scenario(2, SYNCHRONOUS).replacing({"policy": {"kind": "tensor"}, "workload.activation": "1 B"})
    trace = run(one, Cores(capacity=FREE, step_seconds=0.01))
    assert trace.total_seconds == pytest.approx(STEPS * 0.005, rel=1e-5)


@pytest.mark.parametrize(("capacity", "call_seconds"), [(2.0, 4e-3), (1.0, 8e-3), (0.5, 16e-3), (10.0, 4e-3)])
def test_an_exchange_takes_cores_at_both_ends(capacity: float, call_seconds: float) -> None:
    """A ring of two: two rounds, in each of which a rank sends 1 ms of a core's work and receives as much."""
    trace = run(scenario(2, SYNCHRONOUS), Cores(capacity=capacity, message_seconds=1e-3))
    assert trace.total_seconds == pytest.approx(STEPS * call_seconds, rel=1e-5)


def test_bytes_cost_cores_and_a_slow_link_hides_them() -> None:
    """A ring of two sends half of 2 MB in each of two rounds: 1 ms on the link, 4 ms of work of one rank."""
    cores = Cores(capacity=2.0, byte_seconds=2e-9)
    assert run(scenario(2, SYNCHRONOUS, "2 MB", bandwidth="1 GB/s"), cores).total_seconds == pytest.approx(STEPS * 8e-3)
    slow = run(scenario(2, SYNCHRONOUS, "2 MB", bandwidth="100 MB/s"), cores)
    assert slow.total_seconds == pytest.approx(STEPS * 20e-3)


@pytest.mark.parametrize(("capacity", "backward_ms"), [(2.0, 1.5 + 7.5), (2.8, 1.5 + 4.5)])
def test_a_message_takes_cores_from_computing_as_a_link_brings_its_bytes(capacity: float, backward_ms: float) -> None:
    """Two workers of 6 ms of backward each; the first layer's sum goes on beside the other three.

    Each of its bytes needs 2 ns of both ends: 0.2 of a core at 100 MB/s. Both workers send and receive, so all ends
    need 0.8 of a core. Of two cores 1.2 are left for two workers.
    """
    one = scenario(2, {"kind": "ddp", "first_bucket": "1 B", "bucket": "3 MB"}, "4 MB", bandwidth="100 MB/s")
    cores = Cores(capacity=capacity, step_seconds=9e-3, byte_seconds=2e-9)
    backward = run(one, cores).spans.of_kind(SpanKind.BACKWARD)
    np.testing.assert_allclose(backward.end_seconds - backward.start_seconds, 1e-3 * backward_ms, rtol=1e-5)


def test_a_backward_competes_with_its_own_buckets() -> None:
    """One core for two workers: nothing is hidden, whether the exchange of early buckets overlaps or not.

    A step is 2 x 9 ms of computing. A call is 8 ms of exchanging for each bucket: one bucket or four.
    """
    cores = Cores(capacity=1.0, step_seconds=9e-3, message_seconds=1e-3)
    one, four = (run(scenario(2, policy, "16 B"), cores).total_seconds for policy in (ONE_BUCKET, FOUR_BUCKETS))
    assert one == pytest.approx(STEPS * (18e-3 + 8e-3), rel=1e-5)
    assert four == pytest.approx(STEPS * (18e-3 + 4 * 8e-3), rel=1e-5)
    free = Cores(capacity=FREE, step_seconds=9e-3, message_seconds=1e-3)
    hidden = run(scenario(2, FOUR_BUCKETS, "16 B"), free).total_seconds
    assert hidden == pytest.approx(STEPS * (3e-3 + 1.5e-3 + 4 * 4e-3), rel=1e-5)  # forward, the first layer, the calls


@pytest.mark.parametrize(
    ("workers", "count", "behind"), [(2, 2, 1.0), (3, 2, 1.5), (4, 2, 2.0), (2, 3, 0.0), (1, 1, 0.0)]
)
def test_a_message_waits_for_its_turn_behind_the_workers_that_compute_on_each_core(
    workers: int, count: int, behind: float
) -> None:
    """Four layers of 25 ms on cores that share nothing else: the first of two buckets is sent beside backward."""
    policy = {"kind": "ddp", "first_bucket": "1 B", "bucket": "12 B"}
    one = scenario(workers, policy, "16 B")
    cores = Cores(capacity=FREE, step_seconds=0.1, count=count)
    plain, turns = (run(one, found) for found in (cores, replace(cores, turn_seconds=4e-3)))
    rounds = 2 * (workers - 1)
    sums = turns.spans.of_kind(SpanKind.ALL_REDUCE)
    seconds, first = sums.end_seconds - sums.start_seconds, sums.label == "bucket 0"
    np.testing.assert_allclose(seconds[first], rounds * behind * 4e-3, atol=1e-6)
    np.testing.assert_allclose(seconds[~first], 0.0, atol=1e-6)
    assert turns.total_seconds == pytest.approx(plain.total_seconds, rel=1e-6)  # backward hides what it delays


@pytest.mark.parametrize(("turn_seconds", "seconds"), [(20e-3, 40e-3), (30e-3, 50e-3), (1.0, 50e-3)])
def test_the_wait_for_a_turn_ends_when_a_core_becomes_free(turn_seconds: float, seconds: float) -> None:
    """Four buckets of 16.7 ms each: the first one's two rounds wait, at most until backward ends 50 ms later.

    Between two pieces of its backward, a worker leaves its core to nobody.
    """
    cores = Cores(capacity=FREE, step_seconds=0.1, count=2, turn_seconds=turn_seconds)
    sums = run(scenario(2, FOUR_BUCKETS, "16 B"), cores).spans.of_kind(SpanKind.ALL_REDUCE)
    first = sums.where(sums.label == "bucket 0")
    np.testing.assert_allclose(first.end_seconds - first.start_seconds, seconds, atol=2e-5)


@pytest.mark.parametrize(("bandwidth", "waits"), [("1 GB/s", True), ("10 MB/s", False)])
def test_a_message_waits_again_where_it_arrives_while_all_cores_compute(bandwidth: str, waits: bool) -> None:
    """The first of two buckets: a fast one arrives beside backward, a slow one after it."""
    one = scenario(2, {"kind": "ddp", "first_bucket": "1 B", "bucket": "1.2 MB"}, "1.6 MB", bandwidth=bandwidth)
    cores = Cores(capacity=FREE, step_seconds=0.03, count=2)
    plain, turns = (run(one, found) for found in (cores, replace(cores, arrival_turn_seconds=1e-3)))
    first = [trace.spans.where(trace.spans.label == "bucket 0") for trace in (plain, turns)]
    seconds, longer = (spans.end_seconds - spans.start_seconds for spans in first)
    np.testing.assert_allclose(longer - seconds, 2e-3 if waits else 0.0, atol=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
def test_where_no_core_lacks_the_run_is_that_without_shared_cores(policy: dict[str, Any]) -> None:
    """Work of a core is then time like the drawn time."""
    one = scenario(3, policy, "1 MB", bandwidth="1 GB/s", latency="100 us").replacing({"compute.mean": "20 ms"})
    shared = run(one, Cores(capacity=FREE, step_seconds=0.015))
    alone = story.run(one.replacing({"compute.mean": "35 ms"}))
    for column in ("start_seconds", "end_seconds"):
        np.testing.assert_allclose(getattr(shared.spans, column), getattr(alone.spans, column), rtol=1e-9, atol=1e-12)


@settings(max_examples=60)
@given(
    workers=st.integers(1, 5), policy=st.sampled_from(POLICIES), capacity=st.floats(0.5, 6.0),
    step=st.floats(1e-3, 0.1), call=st.floats(0.0, 1e-3), message=st.floats(0.0, 1e-3), byte=st.floats(0.0, 1e-8),
)  # fmt: skip
def test_no_run_is_faster_than_its_cores_nor_slower_than_one_after_the_other(
    workers: int, policy: dict[str, Any], capacity: float, step: float, call: float, message: float, byte: float
) -> None:
    one = scenario(workers, policy, "400 kB", bandwidth="1 GB/s", latency="10 us")
    trace = run(one, Cores(capacity, step, call, message, byte))
    calls = trace.spans.of_kind(SpanKind.ALL_REDUCE)
    messages = 2 * (workers - 1) * len(calls)  # of all ranks, each sent once and received once
    exchanged = 2 * (messages * message + byte * 2 * (workers - 1) / workers * float(calls.bytes.sum()))
    work = workers * STEPS * step + call * len(calls) + exchanged
    waited = len(calls) * 2 * (workers - 1) * (10e-6 + 400e3 / 1e9) + workers * STEPS * NOTHING
    assert trace.total_seconds >= max(work / capacity, STEPS * step) * (1 - 1e-9)
    assert trace.total_seconds <= (work / min(capacity, 1.0) + waited) * (1 + 1e-9)


def test_only_the_story_has_shared_cores() -> None:
    cores = Cores(capacity=2.0, step_seconds=0.01)
    assert selection.run("auto", scenario(2, SYNCHRONOUS), cores=cores).metadata["engine"] == "story"
    for engine in ("loop", "recurrence"):
        with pytest.raises(InputError, match="has no formula for cores that ranks share"):
            selection.run(engine, scenario(2, SYNCHRONOUS), cores=cores)  # type: ignore[arg-type] # one of a tuple


def test_the_network_is_not_slower_beside_cores() -> None:
    """Without work at its ends, a transfer takes its links' time."""
    one = scenario(4, SYNCHRONOUS, "4 MB", bandwidth="1 GB/s", latency="1 ms")
    assert math.isclose(
        run(one, Cores(capacity=FREE)).total_seconds, STEPS * (NOTHING + 6 * (1e-3 + 1e-3)), rel_tol=1e-9
    )


LAYERS = tuple(
    Layer(f"layer {number}", 250_000, 2e-3, 3e-3 * number, (2e-3, 2e-3), (3e-3 * number, 3e-3 * number))
    for number in range(1, 5)
)
PROFILE = Profile(
    "m.py:build", LAYERS, 1e-3, (1e-3, 1e-3), CoreSeconds(8e-3, 12e-3, 1e-3), 9000, 32, "cpu", "2.9", steps=10
)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_profile_computes_on_shared_cores(policy: dict[str, Any]) -> None:
    """With cores for all it takes the profile's times; four workers on one core take four times as long."""
    table = scenario(4, policy).table() | {"workload": {"profile": PROFILE.as_dict()}}
    table["cluster"] |= {"bandwidth": "1 GB/s", "latency": "100 us"}
    one = Scenario.of(table)
    alone = selection.run("auto", one)
    shared = run(one, Cores(capacity=FREE, step_seconds=PROFILE.step_seconds))
    for column in ("start_seconds", "end_seconds"):
        order = [np.lexsort((spans.start_seconds, spans.kind, spans.worker)) for spans in (shared.spans, alone.spans)]
        ours, theirs = (getattr(t.spans, column)[o] for t, o in zip((shared, alone), order, strict=True))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    crowded = run(one, Cores(capacity=1.0, step_seconds=PROFILE.step_seconds))
    assert crowded.total_seconds >= 4 * STEPS * PROFILE.step_seconds


def sharded_with_wake_ups(bandwidth: str, seconds: float, **more: Any) -> Trace:
    """Two workers at stage 3; each of 4 units is gathered before its forward, and again before its backward."""
    table = scenario(2, {"kind": "sharded", "stage": 3}).table() | {"workload": {"profile": PROFILE.as_dict()}}
    table["cluster"] |= {"bandwidth": bandwidth, "latency": "0 s"}
    return run(Scenario.of(table), Cores(FREE, step_seconds=PROFILE.step_seconds, wake_seconds=seconds, **more))


def test_a_worker_wakes_up_after_each_gather_that_it_waited_for() -> None:
    """On slow links it waits for all."""
    trace = sharded_with_wake_ups("1 Mbit/s", 1e-4)
    gathered = np.sort(trace.spans.of_kind(SpanKind.ALL_GATHER).end_seconds)
    begun = np.sort(trace.spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD).start_seconds)
    assert len(begun) == 2 * STEPS * 8
    np.testing.assert_allclose(begun - gathered, 1e-4, rtol=1e-6)


def test_a_worker_that_waits_for_no_gather_needs_not_wake_up() -> None:
    """On fast links it waits for the first of forward and of backward alone; the others come while it computes."""
    without, wakes = (sharded_with_wake_ups("1000 Gbit/s", seconds).total_seconds for seconds in (0.0, 1e-4))
    assert wakes - without == pytest.approx(STEPS * 2 * 1e-4, rel=1e-3)


@pytest.mark.parametrize("call", [0.0, 5e-5])
@pytest.mark.parametrize("turn", [5e-4, 1.0])
def test_a_gather_waits_for_its_turn_from_the_moment_that_workers_wake_up(call: float, turn: float) -> None:
    """A unit's gather begins when that of the unit before is over, and workers compute its forward for 2 ms."""

    def seconds(turn: float) -> Any:
        """Of the gathers before the four forwards of a step; nobody computes during the first."""
        more = {"count": 2, "call_seconds": call, "turn_seconds": turn}
        gathers = sharded_with_wake_ups("1 Mbit/s", 1e-4, **more).spans.of_kind(SpanKind.ALL_GATHER)
        own = gathers.where(gathers.worker == 0)
        return (own.end_seconds - own.start_seconds)[:4]

    longest = 2.1e-3 - call  # from then on a core is free
    np.testing.assert_allclose(seconds(turn) - seconds(0.0), [0.0, *[min(turn, longest)] * 3], atol=2e-5)


def test_only_gathers_have_wake_ups() -> None:
    """That of a worker that waits for a sum is part of the call."""
    table = scenario(2, SYNCHRONOUS, bandwidth="1 GB/s", latency="0 s").table()
    asked = Scenario.of(table | {"policy": {"kind": "tensor"}, "workload": {"model": "transformer"}})
    seconds = [run(asked, Cores(FREE, step_seconds=9e-3, wake_seconds=wake)).total_seconds for wake in (0.0, 1e-4)]
    assert seconds[0] == seconds[1] > 0.0


def test_ddp_works_on_each_bucket_before_its_all_reduce() -> None:
    """One worker: a step is 9 ms of computing, and 2 ms for one bucket, or 1.25 ms for the last of four."""
    cores = Cores(capacity=2.0, step_seconds=9e-3, call_seconds=1e-3, bucket_byte_seconds=62.5e-6)
    one, four = (run(scenario(1, policy, "16 B"), cores).total_seconds for policy in (ONE_BUCKET, FOUR_BUCKETS))
    assert one == pytest.approx(STEPS * (9e-3 + 1e-3 + 16 * 62.5e-6), rel=1e-5)
    assert four == pytest.approx(STEPS * (9e-3 + 1e-3 + 4 * 62.5e-6), rel=1e-5)
