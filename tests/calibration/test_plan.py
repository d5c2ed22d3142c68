"""What is to be measured: bad plans are refused before anything starts, good ones cover what they say."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby
from typing import Any, get_args

import numpy as np
import pytest

from distsim.arrays import Floats
from distsim.calibration import CalibrationPlan
from distsim.calibration.exchange import WARM_UP_STEPS
from distsim.calibration.operations import CORRECTIONS, OF_MODELS, Correction
from distsim.calibration.plan import MODEL_TIMES, PASSES, Probe, Shows
from distsim.cli.calibrate import calibrate
from distsim.cores import Cores
from distsim.engine import story
from distsim.errors import InputError
from distsim.runtime import expected_time
from distsim.runtime.calibrate import expected_of
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"workers": ()}, "names no number"),
        ({"workers": (0, 2)}, "above 0"),
        ({"workers": (2, 2)}, "different"),
        ({"busy": (3, 3)}, "busy"),
        ({"sizes": (1e6,)}, "a line needs two points"),
        ({"sizes": (1e6, 1e6)}, "a line needs two points"),
        ({"sizes": (1e6, 1e6, 2e6)}, "at least two different"),
        ({"sizes": (2.0, 1e6)}, "4 bytes or more"),
        ({"batch": 1}, "at least 2"),
        ({"busy": (999,)}, r"busy = .*take at most 44 workers"),
        ({"batch": 1000}, r"workers = .*take at most 1 workers"),
        ({"repeats": 1}, "at least 2"),
        ({"without": ("ring",)}, "must be of all_reduce"),
        ({"without": tuple(shows for shows in get_args(Shows) if shows != "turn")}, "leaves nothing to measure"),
    ],
)
def test_a_plan_without_a_line_is_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        CalibrationPlan(**changes)


def test_every_launch_has_one_number_of_workers_and_servers() -> None:
    launches = CalibrationPlan(workers=(1, 2, 4), busy=(3,)).one_pass()
    seen = []
    for launch in launches:
        kinds = {(len(probe.scenario.servers), probe.scenario.cluster.workers) for probe in launch}
        assert len(kinds) == 1
        seen += kinds
    assert sorted(seen) == [(0, 1), (0, 2), *[(0, 3)] * MODEL_TIMES, (0, 4), (1, 1), (1, 2), (1, 4)]


def test_workers_that_only_compute_do_so_before_between_and_after_all_other_launches() -> None:
    without, found = (CalibrationPlan(workers=(1, 2), busy=busy).one_pass() for busy in ((), (3, 4)))
    places = [number for number, launch in enumerate(found) if launch[0].scenario.cluster.workers in (3, 4)]
    assert places == [0, 1, 4, 5, 8, 9]
    assert [launch for number, launch in enumerate(found) if number not in places] == without
    for three, four in ((0, 1), (4, 5), (8, 9)):
        assert [probe.scenario.cluster.workers for probe in found[three]] == [3] * len(found[three])
        assert found[three] == found[0]
        assert found[four] == found[1]
    assert {probe.shows for probe in found[0]} == {"compute", "ddp"}


def test_what_no_run_needs_is_left_out() -> None:
    left_out: tuple[Shows, ...] = ("bucket_mean", "hand_over", "ddp")
    whole, part = CalibrationPlan(workers=(2,)), CalibrationPlan(workers=(2,), without=left_out)
    assert len(part.one_pass()) == len(whole.one_pass()) - 1
    shown = {probe.shows for launch in part.launches() for probe in launch}
    assert shown == {probe.shows for launch in whole.launches() for probe in launch} - set(left_out)


def test_every_size_is_measured_at_two_times_and_launches_take_turns() -> None:
    plan = CalibrationPlan(workers=(2,), models=())
    assert plan.launches() == [*plan.one_pass(), *plan.one_pass()]
    alone, together, *beside_a_server = plan.one_pass()
    assert [len(launch[0].scenario.servers) for launch in (alone, together, *beside_a_server)] == [0, 0, 1]
    for launch in plan.one_pass():
        assert len({probe.scenario.dumps() for probe in launch}) == len(launch)
    assert {probe.shows for probe in alone} == {"bucket_mean", "hand_over"}
    assert {probe.shows for probe in together} == {
        "all_reduce",
        "ring_schedule",
        "point_to_point",
        "turn",
        "schedule_turn",
    }


def test_compute_is_measured_at_three_batches_and_where_others_are_not() -> None:
    plan = CalibrationPlan(workers=(1,), busy=(3,), models=("mlp", "cnn"), batch=12)
    found = {
        (probe.scenario.workload.model, probe.scenario.cluster.workers, probe.scenario.workload.batch)
        for launch in plan.launches()
        for probe in launch
        if probe.shows == "compute"
    }
    assert found == {(model, workers, batch) for model in ("mlp", "cnn") for workers in (1, 3) for batch in (3, 6, 12)}


def test_a_model_is_measured_before_between_and_after_all_else_of_a_launch() -> None:
    for launch in CalibrationPlan(workers=(1, 2), models=("mlp",)).one_pass():
        shown = [probe.shows for probe in launch]
        if "compute" not in shown:
            continue
        runs = [[*group] for of_model, group in groupby(shown, key=OF_MODELS.__contains__) if of_model]
        assert len(runs) == MODEL_TIMES
        assert (shown[0], shown[-1]) == ("compute", runs[0][-1])
        assert runs == [runs[0]] * MODEL_TIMES
        steps = {probe.scenario.steps - WARM_UP_STEPS for probe in launch if probe.shows in OF_MODELS}
        assert steps == {math.ceil(20 / (PASSES * MODEL_TIMES))}


@pytest.mark.parametrize("repeats", [2, 5, 20])
def test_repeats_are_not_fewer_than_asked(repeats: int) -> None:
    launch = CalibrationPlan(workers=(2,), models=(), repeats=repeats).launches()[0]
    steps = launch[0].scenario.steps - 5
    assert 2 * steps >= repeats
    assert steps == math.ceil(repeats / 2)


def test_a_step_under_ddp_is_measured_in_one_bucket_and_in_one_for_each_layer() -> None:
    plan = CalibrationPlan(workers=(1,), busy=(3,), models=("mlp", "cnn"), batch=12)
    probes = [probe for launch in plan.launches() for probe in launch if probe.shows == "ddp"]
    found = {
        (probe.scenario.workload.model, probe.scenario.cluster.workers, probe.scenario.workload.batch, len(buckets))
        for probe in probes
        if (buckets := probe.scenario.policy.buckets(probe.scenario.workload.layer_bytes))  # type: ignore[union-attr]
    }
    sizes = {("mlp", 1), ("mlp", 2), ("cnn", 1), ("cnn", 3)}
    assert found == {(model, workers, 12, number) for model, number in sizes for workers in (1, 3)}


@pytest.mark.parametrize(("workers", "busy"), [((1, 2), ()), ((4, 2), (3, 1))])
def test_compute_unit_by_unit_is_measured_with_one_worker_in_one_unit_and_in_one_for_each_layer(
    workers: tuple[int, ...], busy: tuple[int, ...]
) -> None:
    """The pieces share the pause, which is no part of what a model takes."""
    plan = CalibrationPlan(workers=workers, busy=busy, models=("mlp", "cnn"), batch=12, pause=0.03)
    probes = [probe for launch in plan.one_pass() for probe in launch if probe.shows == "units"]
    found = {}
    for probe in probes:
        trace = story.run(probe.scenario, cores=Cores(1.0, step_seconds=4e-3))
        ((operation, model, number, units, seconds),) = probe.samples(trace)
        assert (operation, number, probe.scenario.workload.batch) == ("units", 1, 12)
        np.testing.assert_allclose(seconds, 4e-3, rtol=1e-9)
        found.setdefault(model, []).append(units)
    assert found == {"mlp": [1.0, 2.0] * MODEL_TIMES, "cnn": [1.0, 3.0] * MODEL_TIMES}


def test_units_are_measured_only_beside_a_whole_model_on_one_worker() -> None:
    plan = CalibrationPlan(workers=(4, 2), busy=(3,))
    assert not [probe for launch in plan.one_pass() for probe in launch if probe.shows == "units"]


def test_a_step_under_ddp_is_all_of_it_but_the_drawn_time_and_the_last_all_reduce() -> None:
    plan = CalibrationPlan(workers=(2,), models=("cnn",), pause=0.03, repeats=4)
    probes = [probe for probe in plan.launches()[0] if probe.shows == "ddp"]
    for probe in probes:
        assert probe.scenario.compute_times()(0, 0) == pytest.approx(0.03)
        # What a model takes besides comes on top of the drawn time; in the simulator it is the added one.
        slower = replace(probe, scenario=probe.scenario.replacing({"compute.added": "4 ms"}))
        trace = simulate(slower.scenario)
        ((operation, model, workers, buckets, seconds),) = probe.samples(
            replace(trace, metadata=trace.metadata | {"scenario": probe.scenario.table()})
        )
        assert (operation, model, workers) == ("ddp", "cnn", 2)
        assert buckets in (1, 3)
        assert seconds == pytest.approx(0.004, rel=1e-9)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_schedule_s_turn_is_found_again(workers: int) -> None:
    """In a simulation with this turn, as far as each sum of a layer begins beside workers that compute."""
    probe, turn = correcting_probe(workers, "schedule_turn"), 3e-3
    asked = probe.scenario.replacing({"compute.added": "400 ms", "cluster.bandwidth": "1 Gbit/s"})
    half = turn / 2  # at each end
    cores = Cores(float(workers), step_seconds=0.4, count=workers, turn_seconds=half, arrival_turn_seconds=half)
    trace = story.run(asked.replacing({"compute.added": "0 s"}), cores=cores)
    amount, seconds = corrections(probe, trace)["schedule_turn"]
    all_reduce = 2 * (workers - 1) * (amount / workers / 125e6 + turn)
    assert seconds == pytest.approx(all_reduce, rel=1e-6)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_wake_up_is_found_again(workers: int) -> None:
    """Each forward waits for its gather, which takes longer than a forward."""
    probe = correcting_probe(workers, "schedule_turn")
    cores = Cores(float(workers), step_seconds=8e-3, count=workers, wake_seconds=3e-4)
    trace = story.run(probe.scenario.replacing({"cluster.bandwidth": "100 Mbit/s"}), cores=cores)
    _, seconds = corrections(probe, trace)["wake"]
    assert seconds == pytest.approx(np.full(len(seconds), 3e-4), rel=1e-6)


def test_no_wake_up_shows_where_no_forward_waits() -> None:
    """But for the first, all gathers are over long before their forwards."""
    probe = correcting_probe(2, "schedule_turn")
    trace = story.run(probe.scenario, cores=Cores(2.0, step_seconds=0.4, count=2, wake_seconds=3e-4))
    assert "wake" not in corrections(probe, trace)


def corrections(probe: Probe, trace: Trace) -> dict[Correction, tuple[float, Floats]]:
    """By kind, the amount and the seconds."""
    return {kind: (amount, seconds) for kind, _, amount, seconds in probe.corrections(trace)}


def test_other_probes_correct_nothing() -> None:
    probes = [probe for launch in CalibrationPlan(workers=(1, 2), models=("mlp",)).launches() for probe in launch]
    for probe in {probe.shows: probe for probe in probes}.values():
        trace = simulate(probe.scenario)
        if probe.shows not in CORRECTIONS:
            assert list(probe.corrections(trace)) == []


def test_a_hand_over_is_found_again() -> None:
    """It is the time between two pieces of a worker that is alone."""
    probe = correcting_probe(1, "hand_over")
    assert len(probe.scenario.policy.program(probe.scenario.workload, 1).exchanges) == 64
    trace = story.run(probe.scenario, cores=Cores(2.0, step_seconds=0.1, count=2, call_seconds=3e-4))
    ((shown, workers, _, seconds),) = probe.corrections(trace)
    assert (shown, workers) == ("hand_over", 1)
    assert seconds == pytest.approx(3e-4, rel=1e-6)
    assert list(probe.samples(trace)) == list(probe.work(trace)) == []


def correcting_probe(workers: int, shows: Correction = "turn") -> Probe:
    launches = CalibrationPlan(workers=(max(2, workers),), models=()).launches()
    return next(probe for launch in launches for probe in launch if probe.shows == shows)


def test_a_turn_is_measured_at_each_number_of_workers_that_exchange() -> None:
    probes = [probe for launch in CalibrationPlan(workers=(1, 2, 4)).launches() for probe in launch]
    for shows in ("turn", "schedule_turn"):
        assert {probe.scenario.cluster.workers for probe in probes if probe.shows == shows} == {2, 4}


@pytest.mark.parametrize("workers", [2, 3])
def test_a_turn_shows_in_the_first_bucket_from_the_last_arrival_to_the_last_end(workers: int) -> None:
    probe = correcting_probe(workers)
    slow = probe.scenario.replacing({"compute.added": "80 ms", "cluster.bandwidth": "1 Gbit/s"})
    trace = simulate(slow)
    ((shown, found, amount, seconds),) = probe.corrections(trace)
    assert (shown, found) == ("turn", workers)
    np.testing.assert_allclose(seconds, 2 * (workers - 1) / workers * amount / 125e6, rtol=1e-9)
    assert list(probe.samples(trace)) == list(probe.work(trace)) == []


@pytest.mark.parametrize("workers", [2, 3])
def test_a_schedule_s_turn_shows_in_the_reduce_scatters_beside_backward(workers: int) -> None:
    """Twice, since an all-reduce has an all-gather beside."""
    probe = correcting_probe(workers, "schedule_turn")
    trace = simulate(probe.scenario.replacing({"compute.added": "80 ms", "cluster.bandwidth": "1 Gbit/s"}))
    assert {found for _, found, _, _ in probe.corrections(trace)} == {workers}
    amount, seconds = corrections(probe, trace)["schedule_turn"]
    np.testing.assert_allclose(seconds, 2 * (workers - 1) / workers * amount / 125e6, rtol=1e-9)
    assert list(probe.samples(trace)) == list(probe.work(trace)) == []


@pytest.mark.parametrize("shows", ["turn", "schedule_turn"])
def test_no_turn_shows_where_the_first_exchange_outlasts_backward(shows: Correction) -> None:
    """Its links are slow, or the computing is short: it then travels beside free cores."""
    probe = correcting_probe(2, shows)
    slow = probe.scenario.replacing({"compute.added": "80 ms", "cluster.bandwidth": "10 Mbit/s"})
    assert shows not in corrections(probe, simulate(slow))


@pytest.mark.parametrize("pause", [0.0, 2.0, -1.0])
def test_a_pause_is_a_short_time(pause: float) -> None:
    with pytest.raises(InputError, match=r"pause.*must be from"):
        CalibrationPlan(pause=pause)


def test_each_scenario_of_a_plan_is_estimated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though each of two passes runs it, and the second pass counts as well."""
    estimated: list[Scenario] = []
    monkeypatch.setattr(expected_time, "_run_seconds", lambda scenario, _: estimated.append(scenario) or 1.0)
    plan = CalibrationPlan(workers=(2,), models=())
    probes = [probe for launch in plan.launches() for probe in launch]
    seconds = expected_of(plan)
    assert len(estimated) == len(probes) / PASSES == len({scenario.dumps() for scenario in estimated})
    assert seconds > len(probes)


def test_the_command_estimates_a_plan_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float | None] = []

    def measured(*_given: object, expected: float | None, **_more: object) -> None:
        told.append(expected)
        raise InputError("measured enough")

    monkeypatch.setattr("distsim.cli.calibrate.expected_of", lambda _plan: 12.5)
    monkeypatch.setattr("distsim.cli.calibrate.run", measured)
    with pytest.raises(InputError, match="measured enough"):
        calibrate.main(["--yes"], standalone_mode=False)
    assert told == [12.5]
