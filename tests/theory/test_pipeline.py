"""Pipelines against following every piece of work of the policy's own order by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from distsim.engine import story
from distsim.errors import InputError
from distsim.policies.pipeline import Piece, Pipeline
from distsim.scenario import Scenario
from distsim.theory.pipeline import (
    bubble_share,
    equal_stages_step_seconds,
    gpipe_step_seconds,
    micro_batches_held,
    step_bound_seconds,
)

SHAPES = [(1, 1), (1, 4), (2, 1), (4, 1), (4, 2), (4, 4), (4, 8), (3, 7), (8, 16)]
Seconds = Callable[[str, int], float]  # (forward or backward, stage) -> of one micro-batch


def followed(policy: Pipeline, stages: int, seconds: Seconds, transfer: float = 0.0, eager: bool = True) -> float:
    """The end of the last piece, when stages do their pieces in their order and one message is on a wire at a time."""
    queues = [list(policy.order(stage, stages)) for stage in range(stages)]
    clock = [0.0] * stages
    wire: dict[tuple[int, int], float] = {}
    ended: dict[tuple[int, Piece], float] = {}
    while any(queues):
        for stage, queue in enumerate(queues):
            while queue:
                way = queue[0][0]
                source = stage - 1 if way == "forward" else stage + 1
                begin = clock[stage]
                if 0 <= source < stages:
                    if (source, queue[0]) not in ended:
                        break
                    sent = max(ended[source, queue[0]], wire.get((source, stage), 0.0))
                    arrived = (sent if eager else max(sent, begin)) + transfer
                    wire[source, stage] = arrived
                    begin = max(begin, arrived)
                clock[stage] = ended[stage, queue[0]] = begin + seconds(way, stage)
                queue.pop(0)
    return max(clock)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "micro_batches"), SHAPES)
def test_both_schedules_take_the_same_time_where_stages_are_alike(
    stages: int, micro_batches: int, schedule: str
) -> None:
    for forward, backward in ((1.0, 2.0), (1.0, 1.0), (3.0, 0.5)):
        policy = Pipeline(micro_batches, schedule)
        step = followed(policy, stages, lambda way, _, f=forward, b=backward: f if way == "forward" else b)
        assert equal_stages_step_seconds(stages, micro_batches, forward, backward) == pytest.approx(step, rel=1e-12)
        assert step_bound_seconds([forward] * stages, [backward] * stages, micro_batches) == pytest.approx(step)
        busy = stages * micro_batches * (forward + backward)
        assert bubble_share(stages, micro_batches) == pytest.approx(1 - busy / (stages * step), abs=1e-12)


@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
@pytest.mark.parametrize("transfer", [0.0, 0.3, 5.0])
@pytest.mark.parametrize(("stages", "micro_batches"), SHAPES)
def test_gpipe_with_unlike_stages_and_messages_by_hand(
    stages: int, micro_batches: int, transfer: float, sends: str
) -> None:
    generator = np.random.default_rng(stages)
    for _ in range(5):
        both = {way: generator.uniform(0.5, 3.0, stages).tolist() for way in ("forward", "backward")}
        expected = followed(
            Pipeline(micro_batches), stages, lambda way, stage, t=both: t[way][stage], transfer, sends == "eager"
        )
        found = gpipe_step_seconds(both["forward"], both["backward"], micro_batches, transfer, sends)
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "micro_batches"), SHAPES)
def test_no_schedule_beats_the_bound(stages: int, micro_batches: int, schedule: str) -> None:
    generator = np.random.default_rng(micro_batches)
    for _ in range(5):
        both = {way: generator.uniform(0.5, 3.0, stages).tolist() for way in ("forward", "backward")}
        step = followed(Pipeline(micro_batches, schedule), stages, lambda way, stage, t=both: t[way][stage])
        assert step >= step_bound_seconds(both["forward"], both["backward"], micro_batches) * (1 - 1e-12)


@pytest.mark.parametrize(("stages", "micro_batches", "pieces"), [(2, 4, 2), (4, 8, 2), (4, 4, 3), (3, 9, 1)])
def test_the_interleaved_bubble_by_hand(stages: int, micro_batches: int, pieces: int) -> None:
    """Forwards, in the order of Megatron-LM: p micro-batches on a worker's first piece, on its second, and so on;
    the backwards are their mirror image."""
    group = stages * pieces
    ended: dict[tuple[int, int, int], float] = {}
    clock = [0.0] * stages
    for turn in range(micro_batches * pieces + stages):
        for worker in range(stages):
            number = turn - worker
            if not 0 <= number < micro_batches * pieces:
                continue
            micro, piece = number // group * stages + number % stages, number % group // stages
            before = (worker - 1, piece, micro) if worker else (stages - 1, piece - 1, micro)
            begin = clock[worker] if before[1] < 0 else max(clock[worker], ended[before])
            clock[worker] = ended[worker, piece, micro] = begin + 1 / pieces
    idle = 1 - micro_batches / max(clock)
    assert bubble_share(stages, micro_batches, pieces) == pytest.approx(idle, rel=1e-12)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "micro_batches"), SHAPES)
def test_memory_against_counting_what_a_stage_holds(stages: int, micro_batches: int, schedule: str) -> None:
    for stage in range(stages):
        held = most = 0
        for way, _ in Pipeline(micro_batches, schedule).order(stage, stages):
            held += 1 if way == "forward" else -1
            most = max(most, held)
        assert micro_batches_held(schedule, stage, stages, micro_batches) == most


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_equal_stages_against_the_simulator(schedule: str) -> None:
    scenario = Scenario.loads(
        f"""
        steps = 1
        cluster = {{ workers = 4, bandwidth = "1 Gbit/s", latency = "0 s" }}
        compute = {{ mean = "300 ms" }}
        workload = {{ activation = "0 B", backward_share = 0.6 }}
        policy = {{ kind = "pipeline", micro_batches = 6, schedule = "{schedule}" }}
        communication = {{ kind = "ring" }}
        """
    )
    expected = equal_stages_step_seconds(4, 6, forward_seconds=0.02, backward_seconds=0.03)
    assert story.run(scenario).updates.time_seconds == pytest.approx([expected], rel=1e-9)


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: bubble_share(0, 4), "stages = 0"),
        (lambda: bubble_share(4, 0), "micro_batches = 0"),
        (lambda: bubble_share(4, 4, interleaved=0), "interleaved = 0"),
        (lambda: equal_stages_step_seconds(4, 4, -1.0, 1.0), "forward_seconds = -1.0"),
        (lambda: gpipe_step_seconds([1.0], [1.0, 2.0], 3), "backward_seconds = [1.0, 2.0]"),
        (lambda: gpipe_step_seconds([1.0], [1.0], 3, -1.0), "transfer_seconds = -1.0"),
        (lambda: step_bound_seconds([1.0], [1.0], 0), "micro_batches = 0"),
        (lambda: micro_batches_held("1f1b", 4, 4, 8), "stage = 4"),
        (lambda: micro_batches_held("zigzag", 0, 4, 8), "schedule = 'zigzag'"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
