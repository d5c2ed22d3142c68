"""Overlap of backward and all-reduces against a wire followed by hand, bucket by bucket."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.engine import story
from distsim.errors import InputError
from distsim.policies import Ddp
from distsim.scenario import Scenario
from distsim.theory.collectives import (
    halving_doubling_all_reduce_seconds,
    ring_all_reduce_seconds,
    tree_all_reduce_seconds,
)
from distsim.theory.overlap import (
    accumulated_step_seconds,
    bucket_ready_seconds,
    equal_buckets_step_seconds,
    overlapped_step_seconds,
    step_with_perfect_overlap_seconds,
    step_without_overlap_seconds,
)

seconds = st.floats(0.0, 10.0)
buckets = st.lists(st.tuples(seconds, seconds), min_size=1, max_size=12)


def by_hand(ready: list[float], durations: list[float]) -> float:
    """One wire: a bucket goes when it is there and the wire is free."""
    free = 0.0
    for there, duration in zip(ready, durations, strict=True):
        free = max(free, there) + duration
    return free


@given(buckets)
def test_buckets_one_after_the_other_against_the_wire_by_hand(drawn: list[tuple[float, float]]) -> None:
    ready, durations = np.cumsum([gap for gap, _ in drawn]).tolist(), [duration for _, duration in drawn]
    step = by_hand(ready, durations)
    assert overlapped_step_seconds(ready, durations) == pytest.approx(step, rel=1e-9, abs=1e-12)


@given(seconds, seconds, st.lists(st.integers(1, 5), min_size=1, max_size=8), seconds)
def test_layers_that_are_done_one_by_one(forward: float, backward: float, layers: list[int], together: float) -> None:
    ready, clock = [], forward
    for count in layers:
        for _ in range(count):
            clock += backward / sum(layers)
        ready.append(clock)
    assert bucket_ready_seconds(forward, backward, layers) == pytest.approx(ready, rel=1e-9, abs=1e-12)
    # Between no overlap at all and all of it, however the layers are put together.
    durations = [together * count / sum(layers) for count in layers]
    step = overlapped_step_seconds(bucket_ready_seconds(forward, backward, layers), durations)
    assert step <= step_without_overlap_seconds(forward, backward, together) * (1 + 1e-12)
    assert step >= step_with_perfect_overlap_seconds(forward, backward, together) * (1 - 1e-12)


@given(seconds, seconds, seconds, st.integers(1, 200), st.floats(0.0, 0.01))
def test_equal_buckets_against_the_wire_by_hand(
    forward: float, backward: float, together: float, count: int, each: float
) -> None:
    ready = [forward + backward * (number + 1) / count for number in range(count)]
    expected = by_hand(ready, [together / count + each] * count)
    found = equal_buckets_step_seconds(forward, backward, together, count, each)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_one_bucket_is_no_overlap_and_many_free_ones_are_perfect() -> None:
    assert equal_buckets_step_seconds(0.1, 0.2, 0.15, 1) == pytest.approx(step_without_overlap_seconds(0.1, 0.2, 0.15))
    perfect = step_with_perfect_overlap_seconds(0.1, 0.2, 0.15)
    assert equal_buckets_step_seconds(0.1, 0.2, 0.15, 10**9) == pytest.approx(perfect, rel=1e-8)
    assert step_with_perfect_overlap_seconds(0.1, 0.2, 0.5) == pytest.approx(0.6)


def test_with_latency_there_are_best_buckets_neither_few_nor_many() -> None:
    steps = [equal_buckets_step_seconds(0.1, 0.2, 0.15, count, 0.001) for count in range(1, 300)]
    assert 1 < 1 + int(np.argmin(steps)) < 60


@pytest.mark.parametrize("accumulate", [1, 2, 7])
def test_accumulation_against_adding_up_the_steps(accumulate: int) -> None:
    silent, communicating = 0.3, 0.47
    total = sum(communicating if step % accumulate == accumulate - 1 else silent for step in range(14 * accumulate))
    expected = total / (14 * accumulate)
    assert accumulated_step_seconds(silent, communicating, accumulate) == pytest.approx(expected, rel=1e-12)


ALL_REDUCES = {
    "ring": ring_all_reduce_seconds,
    "tree": tree_all_reduce_seconds,
    "halving_doubling": halving_doubling_all_reduce_seconds,
}


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("kind", ALL_REDUCES)
def test_buckets_against_the_simulator(kind: str, accumulate: int) -> None:
    """An update every `accumulate` steps of 120 ms forward and 180 ms backward."""
    scenario = Scenario.loads(
        f"""
        steps = {3 * accumulate}
        cluster = {{ workers = 4, bandwidth = "1 Gbit/s", latency = "100 us" }}
        compute = {{ mean = "300 ms" }}
        workload = {{ gradient = "16 MiB", layers = 16, backward_share = 0.6 }}
        policy = {{ kind = "ddp", bucket = "3 MiB", first_bucket = "1 MiB", accumulate = {accumulate} }}
        communication = {{ kind = "{kind}" }}
        """
    )
    assert isinstance(scenario.policy, Ddp)
    layers = [len(bucket) for bucket in scenario.policy.buckets([2.0**20] * 16)]
    durations = [ALL_REDUCES[kind](count * 2.0**20, 4, 1.25e8, 1e-4) for count in layers]
    step = overlapped_step_seconds(bucket_ready_seconds(0.12, 0.18, layers), durations)
    found = story.run(scenario).updates.time_seconds
    expected = accumulate * accumulated_step_seconds(0.3, step, accumulate)
    assert found == pytest.approx([expected, 2 * expected, 3 * expected], rel=1e-9)


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: bucket_ready_seconds(-0.1, 0.2, [1]), "forward_seconds = -0.1"),
        (lambda: bucket_ready_seconds(0.1, 0.2, []), "layers_in_bucket = []"),
        (lambda: bucket_ready_seconds(0.1, 0.2, [1, 0]), "layers_in_bucket = [1, 0]"),
        (lambda: overlapped_step_seconds([0.1, 0.2], [0.1]), "all_reduce_seconds = [0.1]"),
        (lambda: overlapped_step_seconds([], []), "all_reduce_seconds = []"),
        (lambda: step_without_overlap_seconds(0.1, 0.2, -1.0), "all_reduce_seconds = -1.0"),
        (lambda: step_with_perfect_overlap_seconds(0.1, float("nan"), 1.0), "backward_seconds = nan"),
        (lambda: equal_buckets_step_seconds(0.1, 0.2, 0.1, 0), "buckets = 0"),
        (lambda: accumulated_step_seconds(0.3, 0.2, 2), "communicating_step_seconds = 0.2"),
        (lambda: accumulated_step_seconds(0.3, 0.4, 0), "accumulate = 0"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
