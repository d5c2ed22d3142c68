"""A profile in a scenario: the file, the sizes and times that follow from it, and the engines that use them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim.calibration import Calibration, Exchange
from distsim.engine.selection import Engine
from distsim.errors import InputError
from distsim.metrics import regime
from distsim.profile import BusyCores, CoreSeconds, Layer, Profile, stage_cuts
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace, violations
from distsim.units import show

READY = (2e-3, 3e-3, 9e-3, 10e-3)
FORWARD = (1e-3, 2e-3, 0.5e-3, 1.5e-3)
BYTES = (1_000_000, 3_000_000, 500_000, 2_500_000)
OPTIMIZER = 0.75e-3
STEP = sum(FORWARD) + READY[-1] + OPTIMIZER


def profile_of(forward: tuple[float, ...] = FORWARD, ready: tuple[float, ...] = READY) -> Profile:
    layers = tuple(
        Layer(f"layer {number}", BYTES[number % 4], one, there, (one, one), (there, there))
        for number, (one, there) in enumerate(zip(forward, ready, strict=True))
    )
    return Profile(
        "my_model.py:build", layers, OPTIMIZER, (OPTIMIZER, OPTIMIZER), CoreSeconds(5e-3, 1e-2, 1e-3), 10**8, 32,
        "cpu", "2.9.0", steps=20,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("step", "busy", "sign"),
    [
        (1.0, None, ""),
        (1.2, BusyCores(2, 0.9, 0.8), ""),
        (1.0, BusyCores(2, 1.1, 1.1), ""),
        (1.3, None, f"a step took {show(STEP, 'second')}, and only {show(STEP / 1.3, 'second')} of a core"),
        (1.0, BusyCores(2, 1.29, 0.9), "workers with a core each computed at 129 % of the pace"),
        (1.0, BusyCores(2, 0.9, 2.36), "each core that workers share computed at 236 % of the pace"),
    ],
)
def test_a_profile_of_a_busy_machine_says_so(step: float, busy: BusyCores | None, sign: str) -> None:
    """step: seconds of a step for each core-second."""
    found = replace(profile_of(), core_seconds=CoreSeconds(0.0, STEP / step, 0.0), busy=busy)
    warnings = found.warnings()
    assert len(warnings) == bool(sign)
    assert not sign or sign in warnings[0]
    assert not replace(found, device="NVIDIA H100", busy=None).warnings()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    profile_of().save(path)
    return path


def table_of(file: Path | str, policy: dict[str, Any] | None = None, **tables: Any) -> dict[str, Any]:
    return {
        "steps": 6,
        "seed": 3,
        "cluster": {"workers": 3, "bandwidth": "1 GB/s", "latency": "100 us"},
        "workload": {"profile": str(file)},
        "policy": policy or {"kind": "synchronous"},
        "communication": {"kind": "ring"},
    } | tables


def scenario(file: Path | str, policy: dict[str, Any] | None = None, **tables: Any) -> Scenario:
    return Scenario.of(table_of(file, policy, **tables))


DDP = {"kind": "ddp", "bucket": "3 MB", "first_bucket": "1 MB"}  # [0], [1], [2, 3] in the order of gradients


def ring_seconds(num_bytes: float, workers: int = 3) -> float:
    return 2 * (workers - 1) * (100e-6 + num_bytes / workers / 1e9)


def test_a_file_is_read_back_as_it_was(file: Path) -> None:
    assert Profile.load(file) == profile_of()


def test_sizes_layers_and_batch_follow_from_the_profile(file: Path) -> None:
    found = scenario(file)
    assert found.gradient_bytes == sum(BYTES)
    assert found.workload.layer_bytes == list(reversed(BYTES))
    assert (found.workload.layers, found.workload.batch, found.compute.mean_seconds) == (4, 32, 0.0)


def test_a_scenario_keeps_the_whole_profile_so_that_a_trace_needs_no_file(file: Path) -> None:
    found = scenario(file)
    file.unlink()
    assert Scenario.loads(found.dumps()) == found
    trace = simulate(found)
    assert simulate(trace.scenario).updates.time_seconds.tolist() == trace.updates.time_seconds.tolist()
    assert found.settings()["workload.profile"] == "my_model.py:build"


def test_the_path_is_relative_to_the_scenario(file: Path) -> None:
    path = file.parent / "run.toml"
    text = Scenario.of(table_of(file)).dumps()
    path.write_text(text[: text.index("[workload]")] + '[workload]\nprofile = "profile.json"\nmodel = "m.py:build"\n'
                    + text[text.index("[policy]"):], "utf-8")  # fmt: skip
    found = Scenario.load(path)
    assert found.workload.profile == profile_of()
    assert found.workload.model == str(file.parent / "m.py:build")


@pytest.mark.parametrize("engine", ["story", "recurrence"])
@pytest.mark.parametrize("drawn", [0.0, 8e-3])
def test_synchronous_and_local_sgd_take_the_whole_step(file: Path, engine: Engine, drawn: float) -> None:
    compute = {"mean": f"{drawn} s"}
    trace = simulate(scenario(file, compute=compute), engine=engine)
    assert np.diff(trace.updates.time_seconds) == pytest.approx(STEP + drawn + ring_seconds(sum(BYTES)), rel=1e-9)
    local = simulate(scenario(file, {"kind": "local_sgd", "period": 3}, compute=compute), engine=engine)
    assert local.total_seconds == pytest.approx(6 * (STEP + drawn) + 2 * ring_seconds(sum(BYTES)), rel=1e-9)


def test_a_server_does_the_optimizers_work(file: Path) -> None:
    trace = simulate(scenario(file, {"kind": "asynchronous"}, communication={"kind": "parameter_server"}))
    spans = trace.spans.of_kind(SpanKind.COMPUTE)
    assert spans.end_seconds - spans.start_seconds == pytest.approx(STEP - OPTIMIZER)


@pytest.mark.parametrize("engine", ["story", "recurrence"])
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("slower", [None, 1.25])
def test_ddp_sends_each_bucket_when_its_gradients_are_there(
    tmp_path: Path, engine: Engine, accumulate: int, slower: float | None
) -> None:
    """slower: how many times as long a step takes under DDP, where the profile tells that."""
    file = tmp_path / "profile.json"
    replace(profile_of(), ddp_seconds=slower and slower * STEP).save(file)
    times = slower or 1.0
    found = scenario(file, DDP | {"accumulate": accumulate})
    trace, begin = simulate(found, engine=engine), 0.0
    assert violations(trace) == []
    for time in trace.updates.time_seconds:
        begin += times * (OPTIMIZER + (accumulate - 1) * (sum(FORWARD) + READY[-1]) + sum(FORWARD))
        through = 0.0
        for last, num_bytes in ((0, BYTES[0]), (1, BYTES[1]), (3, BYTES[2] + BYTES[3])):
            through = max(begin + times * READY[last], through) + ring_seconds(num_bytes)
        assert time == pytest.approx(through, rel=1e-9)
        begin = through


def same(one: Trace, other: Trace) -> None:
    assert one.updates.time_seconds == pytest.approx(other.updates.time_seconds, rel=1e-9)
    for kind in (SpanKind.FORWARD, SpanKind.BACKWARD, SpanKind.ALL_REDUCE):
        ends = [np.sort(trace.spans.of_kind(kind).end_seconds) for trace in (one, other)]
        assert ends[0] == pytest.approx(ends[1], rel=1e-9)


@pytest.mark.parametrize("policy", [DDP, DDP | {"accumulate": 4}, {"kind": "pipeline", "micro_batches": 4}])
@pytest.mark.parametrize("drawn", [{}, {"distribution": "lognormal", "mean": "7 ms", "cv": 0.4}])
def test_both_engines_give_the_same_times(file: Path, policy: dict[str, Any], drawn: dict[str, Any]) -> None:
    workload = {"profile": str(file), "activation": "1 MB"}
    found = scenario(file, policy, workload=workload, compute=drawn)
    same(simulate(found, engine="story"), simulate(found, engine="recurrence"))


def test_a_profile_of_equal_layers_is_the_drawn_time_in_equal_parts(tmp_path: Path) -> None:
    """Forward of 6 ms, and four layers of 3 ms: two thirds of 18 ms."""
    profile = profile_of(forward=(6e-3, 0.0, 0.0, 0.0), ready=(3e-3, 6e-3, 9e-3, 12e-3)).as_dict()
    for layer in profile["layers"]:
        layer["bytes"] = 4_000_000
    profile["optimizer_seconds"] = 0.0
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(profile), "utf-8")
    workload = {"gradient": "16 MB", "layers": 4}
    drawn = scenario("", DDP, workload=workload, compute={"mean": "18 ms"})
    same(simulate(scenario(path, DDP)), simulate(drawn))


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_stages_hold_every_layer_once_and_no_cut_is_better(stages: int) -> None:
    found = stage_cuts(profile_of(), stages)
    assert len(found) == len(set(found)) == stages
    assert found[-1] == len(FORWARD)
    each = np.array(FORWARD) + np.diff(READY, prepend=0.0)
    cuts = itertools.combinations(range(1, 4), stages - 1)
    best = min(max(part.sum() for part in np.split(each[::-1], cut)) for cut in cuts)
    assert max(part.sum() for part in np.split(each[::-1], found[:-1])) == pytest.approx(best)


MODULES = ("a.weight", "a.bias", "b.c.weight", "b.d.weight", "b.d.bias", "scale", "shift")  # in the order of forward


@pytest.mark.parametrize(("stages", "ends"), [(1, [7]), (2, [5, 7]), (5, [2, 3, 5, 6, 7]), (7, [*range(1, 8)])])
def test_a_module_is_cut_only_where_stages_outnumber_modules(stages: int, ends: list[int]) -> None:
    """The last two layers, which are alone, take most of the time; then b.d."""
    seconds = dict(zip(MODULES, (1e-3, 1e-3, 1e-3, 2e-3, 2e-3, 5e-3, 2e-3), strict=True))
    there = list(itertools.accumulate(seconds[name] for name in reversed(MODULES)))
    layers = tuple(
        Layer(name, 4000, 0.0, ready, (0.0, 0.0), (ready, ready))
        for name, ready in zip(reversed(MODULES), there, strict=True)
    )
    assert stage_cuts(replace(profile_of(), layers=layers), stages) == ends


@pytest.mark.parametrize("stage_layers", [(1, 3), (2, 2), (3, 1), (1, 1, 2), (4,)])
def test_stages_are_cut_as_the_scenario_says(file: Path, stage_layers: tuple[int, ...]) -> None:
    each = (np.array(FORWARD) + np.diff(READY, prepend=0.0))[::-1]
    parts = [part.sum() for part in np.split(each, np.cumsum(stage_layers)[:-1])]
    policy = {"kind": "pipeline", "micro_batches": 1, "stage_layers": list(stage_layers)}
    cluster = {"workers": len(stage_layers), "bandwidth": "1 GB/s", "latency": "100 us"}
    found = scenario(file, policy, cluster=cluster, workload={"profile": str(file), "activation": "1 MB"})
    for engine in ("story", "recurrence"):
        spans = simulate(found, engine=engine).spans
        busy = spans.of_kind(SpanKind.FORWARD, SpanKind.BACKWARD)
        computed = np.bincount(busy.worker, busy.end_seconds - busy.start_seconds)
        assert computed == pytest.approx([6 * part for part in parts], rel=1e-9)


def test_a_pipeline_with_one_micro_batch_takes_all_stages_one_after_the_other(file: Path) -> None:
    workload = {"profile": str(file), "activation": "1 MB"}
    trace = simulate(scenario(file, {"kind": "pipeline", "micro_batches": 1}, workload=workload))
    message = 100e-6 + 1e6 / 1e9
    update = OPTIMIZER * BYTES[-1] / sum(BYTES)  # of the first stage, which has one layer
    assert trace.total_seconds == pytest.approx(6 * (update + sum(FORWARD) + READY[-1] + 4 * message), rel=1e-9)


def test_a_calibration_adds_no_second_time_of_the_model(file: Path) -> None:
    known = Calibration((Exchange("ring", 3, 1e9, 1e-4, 0.0, ()),))
    found = scenario(file, workload={"profile": str(file), "model": "my_model.py:build"})
    assert simulate(found, known).total_seconds == pytest.approx(simulate(found).total_seconds, rel=1e-9)


@pytest.mark.parametrize("model", ["mlp", "cnn", "transformer"])
@pytest.mark.parametrize("compute", [{}, {"compute": {"mean": "0 s"}}, {"compute": {"pauses": {
    "probability": 0.5, "duration": "10 ms"}}}])  # fmt: skip
def test_models_of_distsim_need_no_drawn_time_either(model: str, compute: dict[str, Any]) -> None:
    found = scenario("", workload={"model": model}, **compute)
    assert found.compute.mean_seconds == 0.0
    assert simulate(found).total_seconds > 0.0


def test_a_model_of_ones_own_without_a_profile_is_not_simulated() -> None:
    for policy in ({"kind": "synchronous"}, DDP, {"kind": "pipeline", "micro_batches": 2}):
        found = scenario("", policy, workload={"model": "my_model.py:build", "activation": "1 MB"})
        with pytest.raises(InputError, match=r"my_model.py:build.*Cure: run distsim profile my_model.py:build --out"):
            simulate(found)


CUT = {"kind": "pipeline", "micro_batches": 2}
BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a gradient beside it": ({"workload": {"gradient": "4 MB"}}, "gradient follows from the profile", "remove grad"),
    "other layers": ({"workload": {"layers": 16}}, "layers = 16 does not fit the profile, which has 4", "remove"),
    "another batch": ({"workload": {"batch": 64}}, "batch = 64", "distsim profile --batch 64"),
    "a model of distsim": ({"workload": {"model": "mlp"}}, "profile is one of my_model.py:build", "remove one"),
    "no such file": ({"workload": {"profile": "nowhere.json"}}, "profile = 'nowhere.json'", "distsim profile wrote"),
    "no path": ({"workload": {"profile": 3}}, "profile = 3: must be the path", "distsim profile wrote"),
    "stragglers of nothing": ({"compute": {"slow": {"1": 2.0}}}, "slow = {1: 2.0} would change nothing", "mean"),
    "a spread of nothing": (
        {"compute": {"distribution": "lognormal", "mean": "0 s", "cv": 0.3}}, "'lognormal' would change nothing", "mean"
    ),
    "stages for other workers": (
        {"policy": CUT | {"stage_layers": [1, 3]}, "workload": {"activation": "1 MB"}},
        "policy.stage_layers names 2 stages, and a pipeline of 3 workers has 3", "for each stage",
    ),
    "stages of other layers": (
        {"policy": CUT | {"stage_layers": [1, 3, 2]}, "workload": {"activation": "1 MB"}},
        "has 6 layers, and the profile has 4", "each layer to one stage",
    ),
    "stages of nothing": (
        {"policy": CUT | {"stage_layers": [1, 1, 2]}, "workload": {"profile": None, "activation": "1 MB"},
         "compute": {"mean": "9 ms"}},
        "workload.profile is missing", "name a profile",
    ),
    "no list of stages": (
        {"policy": CUT | {"stage_layers": 2}, "workload": {"activation": "1 MB"}}, "= 2: must be a list", "[3, 5]"
    ),
    "more stages than layers": (
        {"policy": {"kind": "pipeline", "micro_batches": 2}, "workload": {"activation": "1 MB"},
         "cluster": {"workers": 5, "bandwidth": "1 GB/s", "latency": "0 s"}},
        "cluster.workers = 5: are more stages than the 4 layers", "write 4 or fewer",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "quoted", "cure"), BAD.values(), ids=BAD)
def test_what_does_not_fit_is_refused(file: Path, changes: dict[str, Any], quoted: str, cure: str) -> None:
    table = table_of(file, **changes)
    table["workload"] = {"profile": str(file)} | table["workload"]
    with pytest.raises(InputError) as raised:
        simulate(Scenario.of(table))
    assert quoted in str(raised.value)
    assert cure in str(raised.value).partition("Cure: ")[2]


def spoiled(**changes: Any) -> dict[str, Any]:
    return profile_of().as_dict() | changes


LAYER = profile_of().as_dict()["layers"][0]
NO_TIME = LAYER | {"forward_seconds": 0.0, "ready_seconds": 0.0}
BROKEN: dict[str, tuple[object, str]] = {
    "no JSON": ("{", "JSON"),
    "a list": ([], "= []"),
    "nothing": ({}, "layers is missing"),
    "another version": (spoiled(distsim_profile=2), "distsim_profile"),
    "a key too many": (spoiled(more=1), "more"),
    "no layers": (spoiled(layers=[]), "layers"),
    "a negative time": (spoiled(layers=[LAYER | {"ready_seconds": -1.0}]), "layers.0.ready_seconds = -1.0"),
    "a text for a time": (spoiled(optimizer_seconds="1 ms"), "optimizer_seconds = '1 ms'"),
    "no number": (spoiled(optimizer_seconds=float("nan")), "optimizer_seconds"),
    "bytes in parts": (spoiled(layers=[LAYER | {"bytes": 1.5}]), "layers.0.bytes = 1.5"),
    "gradients in another order": (spoiled(layers=profile_of().as_dict()["layers"][::-1]), "is ready before it"),
    "needs before the first gradient": (
        spoiled(layers=[LAYER | {"needed_ahead": 1}]),
        "ahead of 1 gradients, and only 0",
    ),
    "no bytes at all": (spoiled(layers=[LAYER | {"bytes": 0}]), "0 bytes"),
    "no time at all": (spoiled(layers=[NO_TIME], optimizer_seconds=0.0), "a step of 0 seconds"),
    "hardly a time": (spoiled(layers=[NO_TIME], optimizer_seconds=5e-324), "seconds, and the least is 1e-12"),
}


@pytest.mark.parametrize(("content", "quoted"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_in_one_message(file: Path, content: object, quoted: str) -> None:
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    with pytest.raises(InputError) as raised:
        scenario(file)
    text = str(raised.value)
    assert quoted in text
    assert str(file)[-20:] in text
    assert text.endswith("Cure: name a file that distsim profile wrote")
    assert "\n" not in text


@pytest.mark.parametrize("policy", [{"kind": "synchronous"}, DDP, {"kind": "pipeline", "micro_batches": 2}])
def test_the_drawn_time_is_slept_and_the_profiles_is_computed(file: Path, policy: dict[str, Any]) -> None:
    """Also in a pipeline, of which a worker computes one stage."""
    found = scenario(file, policy, workload={"profile": str(file), "activation": "1 MB"}, compute={"mean": "20 ms"})
    trace = simulate(found)
    shares = regime(trace)
    assert shares is not None
    assert shares["slept"] * trace.total_seconds == pytest.approx(found.steps * 0.02)
    own = STEP if policy["kind"] != "pipeline" else (STEP - OPTIMIZER) / found.cluster.workers
    assert shares["computed"] * trace.total_seconds == pytest.approx(found.steps * own)
