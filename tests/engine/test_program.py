"""Sharded and tensor parallel training: by hand, against closed forms, and the engines against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from distsim import trace_size
from distsim.engine import recurrence, story
from distsim.errors import InputError
from distsim.groups import Groups
from distsim.link_traffic import carried_by_link
from distsim.metrics import worker_seconds
from distsim.policies import Computation, Exchange, Mesh, Sharded, StepProgram
from distsim.profile import CoreSeconds, Layer, Profile
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.theory.collectives import all_gather_seconds, reduce_scatter_seconds, ring_all_reduce_seconds
from distsim.theory.mesh import mesh_link_bytes, mesh_step_seconds
from distsim.theory.sharding import sharded_link_bytes, sharded_step_seconds
from distsim.theory.tensor import tensor_link_bytes, tensor_step_seconds
from distsim.trace import SpanKind, Trace, violations
from distsim.transformer_profile import transformer_profile
from tests.counts import reduced
from tests.engine.test_engines import assert_same

RATE, LATENCY, STEPS = 1e9, 100e-6, 3
ENGINES = {"recurrence": recurrence.run, "story": story.run}


def scenario(policy: dict[str, Any], workers: int = 4, layers: int = 4, **tables: Any) -> Scenario:
    """Equal layers of 2 MB on links of 1 GB/s; 12 ms of compute for each layer, a third of it forward."""
    table: dict[str, Any] = {
        "steps": STEPS,
        "seed": 3,
        "cluster": {"workers": workers, "bandwidth": "1 GB/s", "latency": "100 us"},
        "compute": {"distribution": "constant", "mean": f"{12 * layers} ms"},
        "workload": {"gradient": f"{2 * layers} MB", "layers": layers, "activation": "1 MB"},
        "policy": policy,
        "communication": {"kind": "ring"},
    }
    return Scenario.of(table | tables)


def sharded(stage: int, **keys: Any) -> dict[str, Any]:
    return {"kind": "sharded", "stage": stage} | keys


def mesh(data: int, tensor: int, **keys: Any) -> dict[str, Any]:
    return {"kind": "mesh", "data": data, "tensor": tensor} | keys


NODES = {
    "workers": 4, "bandwidth": "1 GB/s", "latency": "100 us",
    "nodes": {"per_node": 2, "bandwidth": "10 GB/s", "latency": "2 us"},
}  # fmt: skip


def starts(trace: Trace, kind: SpanKind, worker: int = 0) -> dict[str, float]:
    """By unit, the milliseconds when it starts; a unit comes once in a step."""
    own = trace.spans.of_kind(kind)
    own = own.where((own.worker == worker) & (own.step == 0))
    return {label.split()[-1]: 1e3 * start for label, start in zip(own.label, own.start_seconds.tolist(), strict=True)}


def test_one_step_of_stage_2_by_hand() -> None:
    """Two workers and units of 2 MB: a gather or a reduce-scatter takes 1.1 ms, a forward 4 ms, a backward 8 ms.

    Unit 0 is there at 1.1 ms, unit 1 at 2.2 ms, and the others are gathered while the unit two before them is left.
    """
    trace = simulate(scenario(sharded(2), workers=2), engine="story").between(0.0, 1.0)
    assert starts(trace, SpanKind.FORWARD) == pytest.approx({"0": 1.1, "1": 5.1, "2": 9.1, "3": 13.1})
    assert starts(trace, SpanKind.ALL_GATHER) == pytest.approx({"0": 0.0, "1": 1.1, "2": 5.1, "3": 9.1})
    assert starts(trace, SpanKind.BACKWARD) == pytest.approx({"3": 17.1, "2": 25.1, "1": 33.1, "0": 41.1})
    assert starts(trace, SpanKind.REDUCE_SCATTER) == pytest.approx({"3": 25.1, "2": 33.1, "1": 41.1, "0": 49.1})
    assert trace.updates.time_seconds[0] == pytest.approx(50.2e-3)


def test_at_stage_3_a_step_gathers_again_for_backward() -> None:
    """With no gather ahead nothing overlaps: 4 (1.1 + 4) + 4 (1.1 + 8 + 1.1) ms."""
    trace = simulate(scenario(sharded(3, prefetch=0), workers=2), engine="story")
    assert trace.updates.time_seconds == pytest.approx(np.arange(1, STEPS + 1) * 61.2e-3)
    gathered = trace.spans.of_kind(SpanKind.ALL_GATHER)
    of_first = gathered.where((gathered.worker == 0) & (gathered.step == 0))
    assert of_first.label.tolist() == [f"unit {unit}" for unit in (0, 1, 2, 3, 3, 2, 1, 0)]
    parts = worker_seconds(trace)
    assert parts["communication"] == pytest.approx([STEPS * 13.2e-3] * 2)
    assert parts["waiting"] == pytest.approx([0.0] * 2, abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("prefetch", [0, 1])
@pytest.mark.parametrize("layers", [1, 2, 3, 9])
@pytest.mark.parametrize("mean", ["0.1 ms", "3 ms", "9 ms", "14 ms", "200 ms"])
def test_a_step_takes_what_the_closed_form_says(engine: str, stage: int, prefetch: int, layers: int, mean: str) -> None:
    """From links that decide alone to links that hardly matter: a gather and a reduce-scatter take 1.8 ms each."""
    found = scenario(sharded(stage, prefetch=prefetch), layers=layers).replacing(
        {"compute.mean": f"{float(mean.split()[0]) * layers} ms"}
    )
    each = found.compute.mean_seconds / layers
    gather, scatter = (seconds(2e6, 4, RATE, LATENCY) for seconds in (all_gather_seconds, reduce_scatter_seconds))
    expected = sharded_step_seconds(layers, each / 3, 2 * each / 3, gather, scatter, stage, prefetch)
    trace = ENGINES[engine](found)
    assert trace.updates.time_seconds == pytest.approx(np.arange(1, STEPS + 1) * expected, rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_step_of_tensor_parallel_training_takes_what_the_closed_form_says(engine: str, workers: int) -> None:
    found = scenario({"kind": "tensor"}, workers=workers)
    one = ring_all_reduce_seconds(1e6, workers, RATE, LATENCY)
    expected = tensor_step_seconds(found.compute.mean_seconds, 4, one)
    trace = ENGINES[engine](found)
    assert trace.updates.time_seconds == pytest.approx(np.arange(1, STEPS + 1) * expected, rel=1e-9)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("policy", [*map(sharded, (1, 2, 3)), {"kind": "tensor"}], ids=str)
def test_a_link_carries_what_the_closed_form_says(policy: dict[str, Any], workers: int) -> None:
    found = scenario(policy, workers=workers)
    stage = policy.get("stage")
    each = sharded_link_bytes(8e6, workers, stage) if stage else tensor_link_bytes(1e6, 4, workers)
    for engine in ENGINES.values():
        carried = carried_by_link(engine(found))
        assert list(carried.values()) == pytest.approx([STEPS * each] * 2 * workers * (workers > 1), rel=1e-12)


def test_one_step_of_a_mesh_by_hand() -> None:
    """Two blocks on two nodes of two workers: 2 ms for a half of forward, 4 of backward, 0.104 for a sum in the node.

    A worker has half of a block's 2 MB. Its all-reduce between the nodes takes 1.2 ms, and begins when the node has
    summed the last time for this block: the norm before attention has its gradients then.
    """
    trace = simulate(scenario(mesh(2, 2), layers=2, cluster=NODES), engine="story").between(0.0, 0.2)
    own = trace.spans.where((trace.spans.worker == 3) & (trace.spans.step == 0))
    forwards, backwards = own.of_kind(SpanKind.FORWARD), own.of_kind(SpanKind.BACKWARD)
    sums = own.of_kind(SpanKind.ALL_REDUCE)
    assert 1e3 * forwards.start_seconds == pytest.approx([0.0, 2.104, 4.208, 6.312])
    assert 1e3 * backwards.start_seconds == pytest.approx([8.416, 12.52, 16.624, 16.624, 20.728, 24.832])
    between = sums.where(sums.end_seconds - sums.start_seconds > 1e-3)
    assert 1e3 * np.sort(between.start_seconds) == pytest.approx([16.624, 24.832])
    assert 1e3 * trace.updates.time_seconds[0] == pytest.approx(24.832 + 1.2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("mean", ["0.1 ms", "1 ms", "14 ms"])
@pytest.mark.parametrize(("data", "tensor"), [(2, 2), (3, 2), (1, 4), (2, 3)])
def test_a_step_of_a_mesh_takes_what_the_closed_form_says(
    engine: str, layers: int, mean: str, data: int, tensor: int
) -> None:
    nodes = NODES | {"workers": data * tensor, "nodes": {"per_node": tensor, "bandwidth": "10 GB/s", "latency": "2 us"}}
    found = scenario(mesh(data, tensor), layers=layers, cluster=nodes).replacing(
        {"compute.mean": f"{float(mean.split()[0]) * layers} ms"}
    )
    each = found.compute.mean_seconds / layers
    inside = ring_all_reduce_seconds(1e6, tensor, 1e10, 2e-6)
    between = ring_all_reduce_seconds(2e6 / tensor, data, RATE, LATENCY)
    expected = mesh_step_seconds(layers, each / 3, 2 * each / 3, inside, between)
    trace = ENGINES[engine](found)
    assert trace.updates.time_seconds == pytest.approx(np.arange(1, STEPS + 1) * expected, rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_mesh_with_one_worker_for_each_block_is_sharded_training(engine: str, stage: int) -> None:
    ours, sharded_alone = (ENGINES[engine](scenario(policy)) for policy in (mesh(4, 1, stage=stage), sharded(stage)))
    assert ours.updates == sharded_alone.updates
    assert ours.transfers == sharded_alone.transfers


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize(("data", "tensor"), [(2, 2), (1, 3), (4, 2)])
def test_the_links_of_a_mesh_carry_what_the_closed_form_says(engine: str, stage: int, data: int, tensor: int) -> None:
    nodes = NODES | {"workers": data * tensor, "nodes": {"per_node": tensor, "bandwidth": "10 GB/s", "latency": "2 us"}}
    carried = carried_by_link(ENGINES[engine](scenario(mesh(data, tensor, stage=stage), cluster=nodes)))
    between, inside = mesh_link_bytes(8e6, 1e6, 4, data, tensor, stage)
    for link, num_bytes in carried.items():
        assert num_bytes == pytest.approx(STEPS * (inside if "fast" in link[0] else between), rel=1e-12)
    assert len(carried) == 2 * data * tensor * ((data > 1) + (tensor > 1))


def test_groups_that_share_links_are_played_event_by_event() -> None:
    """Without nodes, both kinds of groups send through the same NIC."""
    found = scenario(mesh(2, 2))
    assert "two groups may share the up-link of host 0" in str(recurrence.cannot(found))
    assert simulate(found).metadata["engine"] == "story"
    trace = simulate(found)
    assert not violations(trace)
    assert carried_by_link(trace)["up", 0] == pytest.approx(STEPS * sum(mesh_link_bytes(8e6, 1e6, 4, 2, 2)))


@st.composite
def programmed(draw: st.DrawFn, kinds: tuple[str, ...] = ("sharded", "sharded", "tensor", "mesh", "mesh")) -> Scenario:
    """Any policy with a program, on any links."""
    kind = draw(st.sampled_from(kinds))
    policy: dict[str, Any] = {"kind": kind}
    workers = draw(st.integers(1, 6))
    if kind == "mesh":
        policy |= {"data": draw(st.integers(1, 4)), "tensor": draw(st.integers(1, 3)), "stage": draw(st.integers(0, 3))}
        workers = policy["data"] * policy["tensor"]
    if kind == "sharded":
        policy |= {"stage": draw(st.integers(1, 3)), "prefetch": draw(st.integers(0, 4))}
        policy |= draw(st.sampled_from([{}, {"bucket": "500 kB"}, {"bucket": "1 GB"}]))
    around = draw(st.sampled_from(["ring", "tree", "halving_doubling"] if kind == "tensor" else ["ring"]))
    speed = st.floats(20.0, 2000.0).map(lambda value: {"up": f"{value:.3f} MB/s"})
    nic = draw(st.dictionaries(st.sampled_from([*map(str, range(workers))]), speed, max_size=2))
    cluster = {"workers": workers, "bandwidth": draw(st.sampled_from(["1 GB/s", "30 MB/s"])), "latency": "100 us"}
    if draw(st.booleans()):
        cluster["nodes"] = {"per_node": draw(st.integers(1, workers)), "bandwidth": "9 GB/s", "latency": "5 us"}
    compute = draw(st.sampled_from([
        {"mean": "9 ms"}, {"mean": "9 ms", "slow": {"0": 2.37}}, {"distribution": "exponential", "mean": "9 ms"},
    ]))  # fmt: skip
    return Scenario.of(
        {
            "steps": draw(st.integers(1, 6)),
            "seed": draw(st.integers(0, 999)),
            "cluster": cluster | ({"nic": nic} if nic else {}),
            "compute": compute,
            "workload": {
                "gradient": draw(st.sampled_from(["1 MB", "0 B"])), "layers": draw(st.integers(1, 7)),
                "activation": "200 kB", "backward_share": draw(st.sampled_from([0.1, 2 / 3])),
            },
            "policy": policy,
            "communication": {"kind": around, "sends": draw(st.sampled_from(["eager", "rendezvous"]))},
        }
    )  # fmt: skip


@settings(max_examples=reduced(250))
@given(programmed())
def test_the_recurrence_means_what_the_story_means(found: Scenario) -> None:
    played = story.run(found)
    assert not violations(played)
    rows = sum(map(len, (played.spans, played.updates, played.contributions, played.transfers)))
    assert rows <= trace_size.rows(found, derived=False)
    if recurrence.cannot(found) is None:
        assert_same(played, recurrence.run(found))


@settings(max_examples=reduced(100))
@given(programmed(("sharded",)), st.integers(2, 3))
def test_from_stage_2_on_two_units_of_gradients_are_whole_at_most(found: Scenario, stage: int) -> None:
    """From the begin of a unit's backward until its reduce-scatter is over, on each worker."""
    assume(isinstance(found.policy, Sharded))
    spans = simulate(found.replacing({"policy.stage": stage})).spans
    for worker in range(found.cluster.workers):
        own = spans.where(spans.worker == worker)
        begins = np.sort(own.of_kind(SpanKind.BACKWARD).start_seconds)
        ends = np.sort(own.of_kind(SpanKind.REDUCE_SCATTER).end_seconds)
        whole = np.searchsorted(begins, ends - 1e-12) - np.arange(len(ends))  # when each is over, with that one
        assert whole.max() <= 2


@settings(max_examples=reduced(100))
@given(programmed(("sharded",)))
def test_gathering_ahead_loses_nothing_on_equal_workers(found: Scenario) -> None:
    """A worker that gathers one unit ahead has at every moment at least what it had without."""
    equal = found.replacing({"compute": {"mean": "9 ms"}})
    assume(equal.policy.kind == "sharded" and not equal.cluster.nic and not equal.cluster.nodes)
    none, one = (simulate(equal.replacing({"policy.prefetch": ahead})).total_seconds for ahead in (0, 1))
    assert one <= none * (1 + 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("prefetch", "ahead", "waited"), [(1, 0, 0.6), (1, 1, 2.7), (0, 1, 0.6)])
def test_a_backward_waits_for_all_parameters_that_it_needs(
    engine: str, prefetch: int, ahead: int, waited: float
) -> None:
    """Biases of 1 MB take 0.6 ms to be gathered, and then weights of 4 MB take 2.1 ms.

    The backward of the biases needs the weights too. Without prefetch the weights are asked for only after it: who
    waited for them there would wait for ever.
    """
    none = (0.0, 0.0)
    layers = (
        Layer("biases", 1_000_000, 1e-3, 1e-3, none, none),
        Layer("weights", 4_000_000, 1e-3, 2e-3, none, none, needed_ahead=ahead),
        Layer("second", 2_000_000, 1e-3, 3e-3, none, none),
        Layer("first", 2_000_000, 1e-3, 4e-3, none, none),
    )
    profile = Profile("m.py:build", layers, 0.0, none, CoreSeconds(0.0, 0.0, 0.0), 0, 1, "cpu", "2.9", steps=5)
    found = scenario(sharded(3, prefetch=prefetch), workers=2, compute={"mean": "0 s"}, workload={"profile": profile})
    trace = ENGINES[engine](found)
    begun = starts(trace, SpanKind.BACKWARD)["3"] - starts(trace, SpanKind.FORWARD)["3"] - 1.0
    assert begun == pytest.approx(waited, rel=1e-6)


@settings(max_examples=reduced(100))
@given(st.data())
def test_engines_agree_and_end_whatever_a_backward_needs(data: st.DataObject) -> None:
    none = (0.0, 0.0)
    layers = tuple(
        Layer(f"layer {number}", size, 1e-3, 2e-3 * (number + 1), none, none, data.draw(st.integers(0, number)))
        for number, size in enumerate(data.draw(st.lists(st.sampled_from([1000, 10**6, 4 * 10**6]), min_size=1)))
    )
    profile = Profile("m.py:build", layers, 0.0, none, CoreSeconds(0.0, 0.0, 0.0), 0, 1, "cpu", "2.9", steps=5)
    stage, prefetch, workers = data.draw(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(1, 4)))
    buckets = data.draw(st.sampled_from([{}, {"bucket": "2 MB"}]))
    policy = sharded(stage, prefetch=prefetch, **buckets)
    found = scenario(policy, workers=workers, compute={"mean": "0 s"}, workload={"profile": profile})
    assert_same(*(run(found) for run in ENGINES.values()))


@pytest.mark.parametrize("engine", ENGINES)
def test_each_worker_updates_its_own_part_of_a_profiled_model(engine: str) -> None:
    """Layers of 1 and 3 ms forward, 2 and 5 ms backward; 9 ms of optimizer are 3 ms for each of three workers."""
    layers = (
        Layer("last", 0, 3e-3, 5e-3, (0.0, 0.0), (0.0, 0.0)),
        Layer("first", 3, 1e-3, 7e-3, (0.0, 0.0), (0.0, 0.0)),
    )
    profile = Profile("m.py:build", layers, 9e-3, (9e-3, 9e-3), CoreSeconds(0.0, 0.0, 0.0), 0, 1, "cpu", "2.9", steps=5)
    cluster = {"workers": 3, "bandwidth": "1000 Gbit/s", "latency": "0 s"}
    found = scenario(sharded(2), cluster=cluster, compute={"mean": "0 s"}, workload={"profile": profile})
    trace = ENGINES[engine](found)
    assert trace.updates.time_seconds == pytest.approx(np.arange(1, STEPS + 1) * (3e-3 + 4e-3 + 7e-3), rel=1e-6)
    assert starts(trace, SpanKind.FORWARD) == pytest.approx({"0": 3.0, "1": 4.0}, rel=1e-6)
    assert starts(trace, SpanKind.BACKWARD) == pytest.approx({"1": 7.0, "0": 12.0}, rel=1e-6)
    updates = trace.spans.of_kind(SpanKind.APPLY)
    assert updates.end_seconds - updates.start_seconds == pytest.approx(np.full(3 * STEPS, 3e-3), rel=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", [0, 1])
def test_each_worker_does_its_part_of_a_profiled_transformer(engine: str, stage: int) -> None:
    """On links that take no time: half of the work, and at stage 1 a quarter of the optimizer's."""
    profile = transformer_profile(2, 64, 4, 100, 16, 4, 1e9)
    nodes = {"per_node": 2, "bandwidth": "1e6 GB/s", "latency": "0 s"}
    cluster = {"workers": 4, "bandwidth": "1e6 GB/s", "latency": "0 s", "nodes": nodes}
    workload = {"profile": profile, "activation": "1 kB"}
    found = scenario(mesh(2, 2, stage=stage), cluster=cluster, compute={"mean": "0 s"}, workload=workload)
    others = profile.step_seconds - profile.optimizer_seconds
    step = others / 2 + profile.optimizer_seconds / (4 if stage else 2)
    assert ENGINES[engine](found).updates.time_seconds == pytest.approx(np.arange(1, STEPS + 1) * step, rel=1e-4)


def test_what_computes_nothing_is_no_block() -> None:
    """An embedding has gradients, which are summed, and no halves, whose results are."""
    profile = transformer_profile(4, 64, 4, 100, 16, 4, 1e9)
    found = scenario(mesh(2, 2), compute={"mean": "0 s"}, workload={"profile": profile, "activation": "1 kB"})
    assert isinstance(found.policy, Mesh)
    program = found.policy.program(found.workload, 4)
    assert [len(queue) for queue in program.queues] == [5, 4 * 4]
    assert sum(exchange.num_bytes for exchange in program.exchanges[:5]) == profile.gradient_bytes / 2
    assert {exchange.unit for exchange in program.exchanges[5:]} == {1, 2, 3, 4}


def test_a_profile_is_not_trained_by_tensor_alone() -> None:
    profile = transformer_profile(4, 64, 4, 100, 16, 4, 1e9)
    rules = {
        profile.model: 'does not take .*kind = "mesh" with data = 1',
        "my_model.py:build": "is not known to have any",
    }
    for model, rule in rules.items():
        workload = {"profile": replace(profile, model=model), "activation": "1 kB"}
        with pytest.raises(InputError, match=f"policy.kind = 'tensor' .*{rule}"):
            scenario({"kind": "tensor"}, compute={"mean": "0 s"}, workload=workload)


def test_a_worker_computes_until_it_needs_an_exchange_or_a_later_one_of_its_queue() -> None:
    """The second computation waits for the second gather alone, and for a sum of another queue."""
    gathers = tuple(Exchange("all_gather", unit, 1e6, after=0) for unit in (0, 1))
    other = Exchange("all_reduce", 0, 1e6, after=1, groups=Groups(2))
    computed = (Computation("forward", 0, 0.5), Computation("forward", 1, 0.5, after=(1, 2)))
    program = StepProgram(computed, (*gathers, other))
    assert program.queues == ((0, 1), (2,))
    assert program.computed_before_waiting == (1, 1, 1)


def test_pieces_that_wait_for_each_other_are_refused() -> None:
    wrong = StepProgram((Computation("forward", 0, 1.0, after=(0,)),), (Exchange("all_gather", 0, 1.0, after=1),))
    with pytest.raises(ValueError, match=r"computation 0 and exchanges \[0\] wait for each other"):
        list(wrong.in_order())


def test_a_saved_trace_has_the_same_transfers(tmp_path: Any) -> None:
    for policy in (sharded(3), {"kind": "tensor"}, mesh(2, 2, stage=2)):
        trace = simulate(scenario(policy, cluster=NODES))
        assert trace.metadata["engine"] == "recurrence"
        trace.save(tmp_path / "run.npz")
        assert Trace.load(tmp_path / "run.npz").transfers == trace.transfers
        assert len(trace.transfers_between(0.0, 5e-3)) < len(trace.transfers)
