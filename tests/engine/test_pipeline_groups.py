"""Pipelines whose stages have several workers: groups with a batch each, and workers that share blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.engine import recurrence, story
from distsim.errors import InputError
from distsim.learning.updates import recorded_updates
from distsim.link_traffic import carried_by_link
from distsim.memory import held
from distsim.pipeline_stages import layer_cuts, stages_of
from distsim.policies import Pipeline
from distsim.profile import CoreSeconds, Layer, Profile
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.collectives import ring_all_reduce_seconds
from distsim.theory.mesh import mesh_link_bytes, mesh_pipeline_step_seconds
from distsim.trace import SpanKind, violations
from tests.counts import reduced
from tests.engine.test_engines import assert_same

ENGINES = {"story": story.run, "recurrence": recurrence.run}
GRADIENT, ACTIVATION, LAYERS, STEPS = 8e6, 2e6, 12, 3
RATE, LATENCY, FAST_RATE, FAST_LATENCY = 1e9, 1e-4, 1e10, 2e-6
SECONDS = 24e-3


def scenario(data: int, tensor: int, stages: int, micro_batches: int = 4, **tables: Any) -> Scenario:
    """Workers that share blocks are a node. tables: others than these; policy: further keys of the policy."""
    cluster: dict[str, Any] = {"workers": data * tensor * stages, "bandwidth": "1 GB/s", "latency": "100 us"}
    if tensor > 1:
        cluster["nodes"] = {"per_node": tensor, "bandwidth": "10 GB/s", "latency": "2 us"}
    table: dict[str, Any] = {
        "steps": STEPS,
        "seed": 3,
        "cluster": cluster,
        "compute": {"mean": f"{SECONDS} s"},
        "workload": {"gradient": "8 MB", "activation": "2 MB", "layers": LAYERS},
        "communication": {"kind": "ring"},
    }
    policy = {"kind": "pipeline", "micro_batches": micro_batches, "data": data, "tensor": tensor}
    return Scenario.of(table | {key: value for key, value in tables.items() if key != "policy"} | {
        "policy": policy | tables.get("policy", {})
    })  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sends", ["rendezvous", "eager"])
@pytest.mark.parametrize(
    ("data", "tensor", "stages", "micro_batches"),
    [(2, 1, 3, 4), (1, 2, 2, 3), (2, 2, 2, 1), (3, 2, 3, 6), (2, 4, 1, 2)],
)
def test_a_step_takes_what_the_closed_form_says(
    engine: str, sends: str, data: int, tensor: int, stages: int, micro_batches: int
) -> None:
    found = scenario(data, tensor, stages, micro_batches, communication={"kind": "ring", "sends": sends})
    if sends == "eager" and engine == "recurrence" and recurrence.cannot(found):
        assert data > 1  # a gradient may come while its target still waits for a message
        return
    piece = SECONDS / LAYERS * stages / micro_batches
    expected = mesh_pipeline_step_seconds(
        LAYERS, stages, micro_batches, piece / 3, 2 * piece / 3,
        ring_all_reduce_seconds(ACTIVATION / micro_batches, tensor, FAST_RATE, FAST_LATENCY) if tensor > 1 else 0.0,
        LATENCY + ACTIVATION / micro_batches / RATE,
        ring_all_reduce_seconds(GRADIENT / stages / tensor, data, RATE, LATENCY) if data > 1 else 0.0,
        sends,  # type: ignore[arg-type]
    )  # fmt: skip
    trace = ENGINES[engine](found)
    assert trace.updates.time_seconds == pytest.approx(np.arange(1, STEPS + 1) * expected, rel=1e-9)
    assert violations(trace) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", [0, 1])
def test_the_links_carry_what_the_closed_form_says(engine: str, stage: int) -> None:
    data, tensor, stages = 2, 2, 3
    carried = carried_by_link(ENGINES[engine](scenario(data, tensor, stages, policy={"stage": stage})))
    own = mesh_link_bytes(GRADIENT / stages, ACTIVATION, LAYERS // stages, data, tensor, stage)
    for worker in range(data * tensor * stages):
        neighbours = 1 if worker // (data * tensor) in (0, stages - 1) else 2
        assert carried["up", worker] == pytest.approx(STEPS * (own[0] + neighbours * ACTIVATION), rel=1e-9)
        assert carried["fast up", worker] == pytest.approx(STEPS * own[1], rel=1e-9)


def test_the_parts_of_a_step_by_hand() -> None:
    """Two stages of two groups, one micro-batch: worker 2 is that of group 0 in the second stage."""
    trace = simulate(scenario(2, 1, 2, 1), engine="story")
    first = trace.spans.where(trace.spans.step == 0)

    def times(worker: int, *kinds: SpanKind) -> list[tuple[float, float]]:
        own = first.where(first.worker == worker).of_kind(*kinds).sorted()
        return [(round(1e3 * a, 6), round(1e3 * b, 6)) for a, b in zip(own.start_seconds, own.end_seconds, strict=True)]

    # Forward 8 ms, backward 16 ms, a message 2.1 ms, an all-reduce of 4 MB among two 2 (0.1 + 2) ms.
    assert times(0, SpanKind.FORWARD, SpanKind.BACKWARD) == [(0.0, 8.0), (36.2, 52.2)]
    assert times(2, SpanKind.FORWARD, SpanKind.BACKWARD) == [(10.1, 18.1), (18.1, 34.1)]
    assert times(0, SpanKind.ALL_REDUCE) == times(1, SpanKind.ALL_REDUCE) == [(52.2, 56.4)]
    assert times(2, SpanKind.ALL_REDUCE) == times(3, SpanKind.ALL_REDUCE) == [(36.2, 40.4)]  # after its message
    assert times(2, SpanKind.SEND) == times(0, SpanKind.RECEIVE) == [(34.1, 36.2)]
    assert trace.updates.time_seconds[0] == pytest.approx(56.4e-3, rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_one_worker_in_each_stage_is_the_plain_pipeline(engine: str, schedule: str) -> None:
    plain = {"kind": "pipeline", "micro_batches": 4, "schedule": schedule}
    ours = scenario(1, 1, 4, policy={"schedule": schedule, "stage": 1})
    assert_same(ENGINES[engine](ours), ENGINES[engine](ours.replacing({"policy": plain})))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_divided_optimizer_moves_the_same_bytes_in_the_same_time(schedule: str) -> None:
    whole, divided = (simulate(scenario(2, 2, 2, policy={"stage": stage, "schedule": schedule})) for stage in (0, 1))
    assert divided.updates.time_seconds == pytest.approx(whole.updates.time_seconds, rel=1e-9)


COMPUTE: list[dict[str, Any]] = [
    {"mean": "24 ms"},
    {"distribution": "lognormal", "mean": "24 ms", "cv": 0.4},
    {"mean": "24 ms", "slow": {"0": 2.0}, "pauses": {"probability": 0.2, "duration": "9 ms"}},
]
SIZES = st.sampled_from(["0 B", "300 kB", "8 MB"])


@st.composite
def pipelines(draw: st.DrawFn) -> Scenario:
    """Any product on any links: nodes that hold a part of a stage, or several stages, and may share a NIC."""
    data, tensor, stages = draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 4])), draw(st.integers(1, 3))
    workers = data * tensor * stages
    cluster = {"workers": workers, "bandwidth": "1 GB/s", "latency": draw(st.sampled_from(["0 s", "1 ms"]))}
    if (per_node := draw(st.sampled_from([1, tensor, data * tensor, 2 * tensor]))) > 1:
        cluster["nodes"] = {
            "per_node": per_node, "bandwidth": "10 GB/s", "latency": "10 us",
            "nic_per": draw(st.sampled_from(["worker", "worker", "node"])),
        }  # fmt: skip
    else:
        cluster["nic"] = {str(draw(st.integers(0, workers - 1))): {"up": "300 MB/s", "down": "500 MB/s"}}
    return scenario(
        data, tensor, stages, draw(st.sampled_from([1, 2, 4])),
        steps=draw(st.integers(1, 4)), cluster=cluster,
        compute=draw(st.sampled_from(COMPUTE)),
        workload={"gradient": draw(SIZES), "activation": draw(SIZES), "layers": 6},
        policy={"schedule": draw(st.sampled_from(["gpipe", "1f1b"])), "stage": draw(st.integers(0, 1))},
        communication={"kind": "ring", "sends": draw(st.sampled_from(["rendezvous", "rendezvous", "eager"]))},
    )  # fmt: skip


@settings(max_examples=reduced(150))
@given(pipelines())
def test_the_recurrence_means_what_the_story_means(found: Scenario) -> None:
    told = story.run(found)
    assert violations(told) == []
    assert len(told.updates) == found.steps
    if recurrence.cannot(found) is None:
        assert_same(told, recurrence.run(found))


FLAT: dict[str, Any] = {"workers": 8, "bandwidth": "1 GB/s", "latency": "1 ms"}


@pytest.mark.parametrize(
    ("data", "tensor", "nodes", "sends"),
    [
        (1, 2, None, "rendezvous"),  # sums and messages
        (2, 1, None, "eager"),  # a gradient, and a message to the same worker
        (4, 1, {"per_node": 2, "nic_per": "node"}, "rendezvous"),  # two workers' messages and gradients
        (1, 2, {"per_node": 4}, "rendezvous"),  # sums and messages, inside a node
    ],
)
def test_links_that_exchanges_and_messages_share_have_no_recurrence(
    data: int, tensor: int, nodes: dict[str, Any] | None, sends: str
) -> None:
    fast = {"nodes": {"bandwidth": "10 GB/s", "latency": "10 us"} | nodes} if nodes else {}
    found = scenario(data, tensor, 8 // data // tensor, cluster=FLAT | fast, communication={
        "kind": "ring", "sends": sends,
    })  # fmt: skip
    assert "may share the" in str(recurrence.cannot(found))
    assert recurrence.cannot(found.replacing({"policy": {"kind": "pipeline", "micro_batches": 2}})) is None


def profile(blocks: int) -> Profile:
    """A transformer's: blocks of 3 ms forward and 6 ms backward, and an embedding that only holds bytes."""
    found, ready = [], 0.0
    for number in range(blocks):
        ready += 6e-3
        found.append(Layer(f"block {number}", 1_000_000, 3e-3, ready, (3e-3,) * 2, (ready,) * 2))
    found.append(Layer("embedding", 3_000_000, 0.0, ready, (0.0,) * 2, (ready,) * 2))
    bytes_held = 2 * (blocks + 3) * 1_000_000 + 16_000_000
    return Profile(
        f"transformer of {blocks} blocks of width 64", tuple(found), 11e-3, (11e-3,) * 2, CoreSeconds(0.0, 0.0, 0.0),
        bytes_held, 4, "computed", "none", steps=1,
    )  # fmt: skip


def test_stages_that_share_blocks_have_as_many_and_the_first_one_the_embedding() -> None:
    found = scenario(1, 2, 2, 4, workload={"profile": profile(4), "activation": "2 MB"}, compute={"mean": "0 s"})
    policy, workload = found.policy, found.workload
    assert isinstance(policy, Pipeline)
    assert layer_cuts(policy, workload, 4) == [3, 5]
    first, second = stages_of(policy, workload, 4).of
    assert (first.gradient_bytes, second.gradient_bytes) == (2.5e6, 1e6)
    # Each worker does half of two blocks for each of four micro-batches, in four parts.
    assert [part.added_seconds for part in first.forward] == pytest.approx([3e-3 / 2 / 4 / 2] * 4)
    assert [part.added_seconds for part in second.backward] == pytest.approx([6e-3 / 2 / 4 / 2] * 4)
    assert first.apply_seconds == pytest.approx(11e-3 * 5 / 7 / 2)
    for engine in ENGINES.values():
        busy = engine(found).spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD, SpanKind.APPLY)
        computed = np.bincount(busy.worker, busy.end_seconds - busy.start_seconds)
        assert computed == pytest.approx(STEPS * (9e-3 + 11e-3 * np.array([5, 5, 2, 2]) / 14), rel=1e-9)


def test_what_a_worker_holds_is_its_part_of_its_stage() -> None:
    workload = {"profile": profile(4), "activation": "2 MB"}
    found = scenario(2, 2, 2, 4, workload=workload, compute={"mean": "0 s"}, policy={"schedule": "1f1b"})
    most = held(found, "adam")
    assert (most.parameters, most.gradients, most.optimizer) == (2.5e6, 2.5e6, 5e6)
    assert most.activations == pytest.approx(16e6 / 2 / 2 * 2 / 4)  # half the blocks, half of each, two micro-batches
    divided = held(found.replacing({"policy.stage": 1}), "adam")
    assert (divided.parameters, divided.gradients, divided.optimizer) == (2.5e6, 2.5e6, 2.5e6)


@pytest.mark.parametrize(
    ("policy", "workers"),
    [
        ({"kind": "pipeline", "micro_batches": 2, "data": 2, "tensor": 2}, 8),
        ({"kind": "mesh", "data": 2, "tensor": 2}, 4),
        ({"kind": "tensor"}, 4),
    ],
)
def test_a_replay_learns_from_each_batch_once(policy: dict[str, Any], workers: int) -> None:
    found = scenario(1, 1, workers).replacing({"policy": policy, "cluster.workers": workers})
    updates = recorded_updates(simulate(found))
    batches = found.policy.batches(workers)
    assert updates.workers == batches == policy.get("data", 1)
    assert [[gradient.worker for gradient in one.gradients] for one in updates.updates()] == [[*range(batches)]] * STEPS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster.workers": 6}, "policy.data = 2 times policy.tensor = 2 are the workers of a stage"),
        ({"workload.layers": 3}, "2 stages of workers that share blocks need as many blocks each, and the model has 3"),
        ({"policy.stage": 2}, "stage"),
        ({"policy.stage_layers": [2, 2]}, "policy.stage_layers = [2, 2] cuts a pipeline whose workers share no block"),
        ({"workload": {"activation": "2 MB"}}, "workload.gradient is missing"),
        ({"workload": {"model": "mlp", "activation": "2 MB"}}, "mlp"),
        ({"communication.kind": "tree"}, "communication.kind = 'tree' makes no sense"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_cure(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        scenario(2, 2, 2).replacing(changes)
    assert words in str(caught.value)
    assert "Cure: " in str(caught.value)
