"""What a worker holds from moment to moment: by hand, and its most beside what `memory.held` says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distsim.errors import InputError
from distsim.figures import memory
from distsim.memory import held
from distsim.memory_over_time import KINDS, MemoryOverTime, held_over_time
from distsim.policies import FlexRR
from distsim.profile import Profile
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.transformer_profile import transformer_profile


def profile(layers: int = 6) -> Profile:
    return transformer_profile(layers, 64, 4, vocabulary=100, sequence=32, batch=8, operations_per_second=1e9)


def scenario(policy: dict[str, Any], workers: int = 4, **tables: Any) -> Scenario:
    table: dict[str, Any] = {
        "steps": 3,
        "cluster": {"workers": workers, "bandwidth": "1 GB/s", "latency": "10 us"},
        "compute": {"mean": "0 s"},
        "workload": {"profile": profile()},
        "policy": policy,
        "communication": {"kind": "ring"},
    }
    if policy["kind"] in ("mesh", "pipeline"):
        table["workload"]["activation"] = "10 kB"
    return Scenario.of(table | tables)


def at(found: MemoryOverTime, kind: str, seconds: float) -> float:
    return float(np.interp(seconds, found.time_seconds, found.held[kind]))


def test_stage_3_by_hand() -> None:
    """Two units of 1 MB on two workers, 1 ms a gather; forward takes 3 ms a unit, backward 6 ms; nothing ahead."""
    found = scenario(
        {"kind": "sharded", "stage": 3, "prefetch": 0}, workers=2, steps=1, workload={"gradient": "2 MB", "layers": 2},
        compute={"mean": "18 ms"}, cluster={"workers": 2, "bandwidth": "0.5 GB/s", "latency": "0 s"},
    )  # fmt: skip
    over_time = held_over_time(simulate(found))
    # Unit 0 is gathered from 0 to 1 ms and used until 4 ms, unit 1 from 4 to 5 and until 8, again from 8 to 9 and until
    # 15 ms; unit 0 again: from 15 to 16, or after the sum of unit 1 from 16 to 17 ms, and until 23 ms.
    parameters = [(t, at(over_time, "parameters", t / 1e3) / 1e6) for t in (0.5, 3.9, 4.5, 7.9, 8.5, 14.9)]
    assert parameters == [(t, pytest.approx(2.0)) for t, _ in parameters]
    gradients = {t: at(over_time, "gradients", t / 1e3) / 1e6 for t in (0.5, 8.9, 9.1, 14.9)}
    assert gradients == pytest.approx({0.5: 1.0, 8.9: 1.0, 9.1: 2.0, 14.9: 2.0})
    assert over_time.held["parameters"][-1] == over_time.held["gradients"][-1] == 1e6
    assert over_time.held["parameters"].max() == over_time.held["gradients"].max() == 2e6


def test_activations_come_evenly_in_forward_and_go_evenly_in_backward() -> None:
    """A trace with computations alone has the optimizer's time in them."""
    whole = held(scenario({"kind": "ddp"})).activations
    for policy in ({"kind": "ddp"}, {"kind": "synchronous"}):
        over_time = held_over_time(simulate(scenario(policy)))
        forward = profile().forward_seconds
        assert at(over_time, "activations", forward / 2) == pytest.approx(whole / 2, rel=1e-3)
        assert at(over_time, "activations", forward) == pytest.approx(whole, rel=1e-3)
        assert at(over_time, "activations", forward + profile().backward_seconds / 4) == pytest.approx(
            0.75 * whole, rel=1e-3
        )
        assert over_time.held["activations"][-1] == 0.0


@st.composite
def any_policy(draw: st.DrawFn) -> Scenario:
    kind = draw(st.sampled_from(["sharded", "mesh", "pipeline", "ddp", "local_sgd", "backup", "flexrr"]))
    policy: dict[str, Any] = {"kind": kind}
    workers, tables = draw(st.integers(3, 5)), {}
    if kind in ("sharded", "mesh"):
        policy |= {"stage": draw(st.integers(1, 3)), "prefetch": draw(st.integers(0, 3))}
    if kind == "mesh":
        policy |= {"data": draw(st.integers(1, 3)), "tensor": draw(st.sampled_from([1, 2, 4]))}
        workers = policy["data"] * policy["tensor"]
    if kind == "pipeline":
        policy |= {"micro_batches": draw(st.integers(1, 6)), "schedule": draw(st.sampled_from(["gpipe", "1f1b"]))}
    if kind == "local_sgd":
        policy |= {"period": 2}
    if kind in ("backup", "flexrr"):
        policy |= {"backups": 1} if kind == "backup" else {}
        tables["communication"] = {"kind": "parameter_server"}
    tables["compute"] = draw(
        st.sampled_from([{"mean": "0 s"}, {"mean": "5 ms", "distribution": "lognormal", "cv": 0.5}])
    )
    return scenario(policy, workers, seed=draw(st.integers(0, 99)), **tables)


@settings(max_examples=60, deadline=None)
@given(any_policy(), st.sampled_from(["sgd", "adam", "mixed_adam"]))
def test_its_most_is_what_memory_says_and_no_kind_is_negative(found: Scenario, optimizer: str) -> None:
    """At stages 2 and 3 the most may be less: what is gathered ahead is not always there at once."""
    trace, predicted = simulate(found), held(found, optimizer)
    over_time = [held_over_time(trace, worker, optimizer) for worker in range(trace.workers)]
    for kind in KINDS:
        most, said = max(one.held[kind].max() for one in over_time), getattr(predicted, kind)
        least = min(one.held[kind].min() for one in over_time)
        assert least >= 0.0
        if getattr(found.policy, "stage", 0) >= 2:
            assert most <= said * (1 + 1e-9)
        elif isinstance(found.policy, FlexRR) and kind == "activations":
            assert most == pytest.approx(said / found.policy.items, rel=1e-6)
        elif found.policy.kind == "pipeline":
            assert most >= said * (1 - 1e-6)
        else:
            assert most == pytest.approx(said, rel=1e-6)
    for one in over_time:
        assert (np.diff(one.time_seconds) >= 0).all()
        assert one.time_seconds[-1] == trace.total_seconds


def test_the_stage_that_holds_most_of_a_pipeline_holds_what_memory_says() -> None:
    for schedule in ("gpipe", "1f1b"):
        found = scenario({"kind": "pipeline", "micro_batches": 8, "schedule": schedule})
        trace = simulate(found)
        most = max(held_over_time(trace, stage, "adam").total.max() for stage in range(4))
        assert most == pytest.approx(held(found, "adam").total, rel=1e-6)


def test_what_has_no_answer_is_refused() -> None:
    trace = simulate(scenario({"kind": "ddp"}))
    with pytest.raises(InputError, match=r"worker\) = 4: is not a worker of this run, which has 4"):
        held_over_time(trace, 4)
    with pytest.raises(InputError, match="optimizer = 'adamw': is not known"):
        held_over_time(trace, 0, "adamw")
    with pytest.raises(InputError, match="part of a run"):
        held_over_time(trace.between(0.0, trace.total_seconds / 2))


def test_a_run_ends_with_its_last_update_also_for_workers_that_go_on() -> None:
    found = scenario(
        {"kind": "asynchronous"}, steps=1, compute={"mean": "900 ms", "distribution": "lognormal", "cv": 1.5},
        communication={"kind": "parameter_server"},
    )  # fmt: skip
    trace = simulate(found)
    assert trace.spans.end_seconds.max() > trace.total_seconds
    assert {held_over_time(trace, worker).time_seconds[-1] for worker in range(4)} == {trace.total_seconds}


def test_the_figure_finds_the_stage_that_holds_most_among_many() -> None:
    layers = profile(40)
    cuts = [1] * 10 + [len(layers.layers) - 19] + [1] * 9
    policy = {"kind": "pipeline", "micro_batches": 4, "schedule": "gpipe", "stage_layers": cuts}
    found = scenario(policy, 20, workload={"profile": layers, "activation": "10 kB"})
    shown = memory(simulate(found), optimizer="adam")
    assert shown.summary.startswith("Worker 10 holds at most ")
    assert max(row["most (MB)"] for row in shown.table) == pytest.approx(held(found, "adam").total / 1e6)
    assert {one.name for one in shown.figure.data} == set(KINDS)


def test_the_figure_says_who_has_the_numbers_of_the_optimizer() -> None:
    asked = scenario({"kind": "asynchronous"}, communication={"kind": "parameter_server"})
    assert "The servers hold the optimizer's numbers." in memory(simulate(asked), optimizer="adam").summary


def test_without_prefetch_one_whole_unit_has_gradients_at_stage_3() -> None:
    found = scenario(
        {"kind": "sharded", "stage": 3, "prefetch": 0}, workload={"gradient": "6 MB", "layers": 6},
        compute={"mean": "60 ms"},
    )  # fmt: skip
    over_time = held_over_time(simulate(found))
    assert held(found).gradients == over_time.held["gradients"].max() == 2.5e6


def test_the_figure_draws_the_first_steps_or_what_it_is_told() -> None:
    trace = simulate(scenario({"kind": "sharded", "stage": 1}, workload={"gradient": "6 MB", "layers": 6}, steps=20,
                              compute={"mean": "60 ms"}))  # fmt: skip
    ends = np.unique(trace.updates.time_seconds)
    few, window = memory(trace), memory(trace, start_seconds=float(ends[4]), end_seconds=float(ends[5]))
    assert few.figure.layout.xaxis.range[1] == pytest.approx(1e3 * ends[2], rel=0.02)
    assert "Drawn: 0 s to" in few.summary
    drawn = np.array(window.figure.data[0].x)
    assert window.figure.layout.xaxis.range == pytest.approx((1e3 * ends[4], 1e3 * ends[5]))
    assert drawn[0] <= 1e3 * ends[4] < drawn[-1]
    assert len(drawn) < len(memory(trace, end_seconds=float(ends[-1])).figure.data[0].x) / 10
    with pytest.raises(InputError, match="must end after it starts"):
        memory(trace, start_seconds=1.0, end_seconds=0.5)
