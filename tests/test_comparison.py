"""Comparing two traces: joins, percentages, and causes that add up."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from distsim.calibration import Calibration, Exchange
from distsim.cli.summary_tables import comparison_table
from distsim.comparison import compare, compute_difference, link_differences, staleness_distance, verdict
from distsim.errors import InputError
from distsim.examples import NAMES, example
from distsim.experiment import of_traces
from distsim.metrics import summary, worker_seconds
from distsim.policies import Synchronous
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace, TraceBuilder
from distsim.transformer_profile import transformer_profile
from distsim.units import show


def run_as(scenario: Scenario, true: Scenario) -> Trace:
    """A run that says it is one of `scenario`, on a machine where things are as in `true`."""
    trace = simulate(true)
    return replace(trace, metadata=trace.metadata | {"scenario": scenario.table()})


@pytest.mark.parametrize("name", NAMES)
def test_a_run_equals_itself(name: str) -> None:
    trace = simulate(example(name))
    error = compare(trace, trace).error_pct
    assert (error.step_median, error.total, error.unmatched) == (0.0, 0.0, 0)
    assert set(error.causes.values()) == {0.0}


def test_errors_are_in_percent_of_the_measurement() -> None:
    said = example("synchronous_ring").replacing({"compute.distribution": "constant", "compute.cv": None})
    slow, fast = run_as(said, said.replacing({"compute.mean": "100 ms"})), run_as(said, said)
    exchange = slow.updates.time_seconds[0] - 0.1
    error = compare(fast, slow).error_pct
    assert error.step_median == pytest.approx(100 * 0.05 / (0.1 + exchange))
    assert error.total == pytest.approx(-100 * 0.05 / (0.1 + exchange)), "the prediction is too low"
    other_way = compare(slow, fast).error_pct
    assert (other_way.step_median, other_way.total) == pytest.approx((100 * 0.05 / (0.05 + exchange),) * 2)
    assert error.causes["compute"] == pytest.approx(-50 * 0.05)
    assert error.causes["communication"] == pytest.approx(0.0, abs=1e-9)


def test_causes_add_up_to_the_signed_error_of_the_total() -> None:
    said = example("backup_server")
    measured = simulate(said)
    predicted = run_as(said, said.replacing({"cluster.bandwidth": "2 Gbit/s", "compute.mean": "40 ms"}))
    found = compare(predicted, measured)
    assert sum(found.error_pct.causes.values()) == pytest.approx(predicted.total_seconds - measured.total_seconds)
    assert found.error_pct.causes["compute"] < 0 < found.error_pct.causes["communication"]


def applied(*staleness: int) -> Trace:
    """A run whose gradients were so stale, with an update each second."""
    builder = TraceBuilder()
    for version, stale in enumerate(staleness, start=1):
        builder.applied(version, worker=0, step=version - 1, read_version=version - 1 - stale)
        builder.update(version, time_seconds=float(version))
    return builder.build(workers=1, servers=1, producer="measured")


def test_the_signs_of_errors_are_those_of_predicted_minus_measured() -> None:
    scenario = {"scenario": example("backup_server").table()}
    runs = applied(0, 1, 1), applied(0, 1, 2, 3)
    low, high = (replace(run, metadata=run.metadata | scenario) for run in runs)
    errors = compare(low, high).error_pct
    assert (errors.staleness, errors.total) == (pytest.approx(100 * (2 / 3 - 1.5) / 1.5), pytest.approx(-25.0))
    assert compare(high, low).error_pct.staleness == pytest.approx(125.0)
    console = Console(width=110)
    with console.capture() as printed:
        console.print(comparison_table(compare(low, high)), comparison_table(compare(high, low)))
    assert re.findall(r"total .* s .* ([-+].+ %)", printed.get()) == ["-25.0 %", "+33.3 %"]
    assert re.findall(r"mean staleness .* ([-+].+ %)", printed.get()) == ["-55.6 %", "+125.0 %"]


def test_the_distance_of_two_distributions_of_staleness() -> None:
    three_of_four = applied(0, 1, 1, 1)
    assert staleness_distance(three_of_four, applied(0, 1, 0, 1, 1, 1, 1, 1)) == 0.0, "shares, not numbers"
    assert staleness_distance(three_of_four, applied(0, 1, 0, 0)) == pytest.approx(0.5)
    assert staleness_distance(applied(0, 1), applied(0, 0)) == staleness_distance(applied(0, 0), applied(0, 1)) == 0.5
    assert staleness_distance(applied(0, 1, 2), applied(0)) == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="no applied gradient"):
        staleness_distance(three_of_four, TraceBuilder().build(workers=1, servers=1, producer="measured"))


def test_steps_that_only_one_run_has_are_counted() -> None:
    said = example("synchronous_ring")
    longer, shorter = simulate(said), run_as(said, said.replacing({"steps": 47}))
    assert compare(longer, shorter).error_pct.unmatched == compare(shorter, longer).error_pct.unmatched == 3
    assert compare(longer, shorter).error_pct.step_median == 0.0


def test_what_does_not_apply_is_none() -> None:
    trace = simulate(example("synchronous_ring"))
    nothing = replace(trace, updates=trace.updates.where(trace.updates.version < 0))
    found = compare(trace, nothing)
    assert (found.error_pct.step_median, found.error_pct.total, found.error_pct.staleness) == (None, None, None)


DIFFERENT: list[tuple[dict[str, Any], str]] = [
    ({"cluster.workers": 6}, "cluster.workers of the predicted trace = 5: must equal the measured one's, 6"),
    ({"seed": 8}, "seed of the predicted trace = 7: must equal the measured one's, 8"),
    ({"steps": 49}, "steps of the predicted trace = 50: must equal the measured one's, 49"),
    ({"compute.cv": 0.4}, "compute.cv of the predicted trace = 0.3: must equal the measured one's, 0.4"),
    ({"compute.mean": "51 ms"}, "compute.mean of the predicted trace = '50 ms': must equal the measured one's, '51 m"),
    ({"compute.slow": {"3": 2.0}}, "compute.slow.3 of the predicted trace = None: must equal the measured one's, 2.0"),
    ({"workload.gradient": "4 MB"}, "workload.gradient of the predicted trace = '4 MiB': must equal"),
    ({"workload.batch": 31}, "workload.batch of the predicted trace = 32: must equal the measured one's, 31"),
    ({"policy.backups": 2}, "policy.backups of the predicted trace = 1: must equal the measured one's, 2"),
    ({"policy.cancel": True}, "policy.cancel of the predicted trace = False: must equal the measured one's, True"),
    ({"communication.receive": "fifo"}, "communication.receive of the predicted trace = 'concurrent': must equal"),
    ({"communication.sends": "eager"}, "communication.sends of the predicted trace = 'rendezvous': must equal"),
    (
        {"failures": {"mean_time_between": "1 h", "checkpoint_every": "1 min"}},
        "failures.mean_time_between of the predicted trace = None: must equal the measured one's, '3600 s' (so must "
        "failures.checkpoint_every, ",
    ),
    ({"policy": {"kind": "asynchronous"}, "seed": 8}, "policy.kind of the predicted trace = 'backup': must equal"),
]


@pytest.mark.parametrize(("changes", "message"), DIFFERENT, ids=lambda value: str(value)[:40])
def test_traces_of_different_scenarios_are_refused(changes: dict[str, Any], message: str) -> None:
    scenario = example("backup_server")
    with pytest.raises(InputError, match=re.escape(message) + ".* Cure: compare two traces of one scenario"):
        compare(simulate(scenario), simulate(scenario.replacing(changes)))


SAME: list[dict[str, Any]] = [
    {"name": "the same on the cluster"},
    {"cost": {"price_per_hour": 1.0}},
    {"policy.cancel": False, "communication.receive": "concurrent"},
]


@pytest.mark.parametrize("changes", SAME, ids=str)
def test_what_changes_no_run_may_differ(changes: dict[str, Any]) -> None:
    scenario = example("backup_server")
    predicted, measured = simulate(scenario), simulate(scenario.replacing(changes))
    assert compare(predicted, measured).error_pct.total == 0.0
    assert link_differences(predicted, measured) == []


def test_another_file_of_the_same_name_may_hold_the_times(tmp_path: Path) -> None:
    runs = []
    for machine in ("laptop", "cluster"):
        (tmp_path / machine).mkdir()
        (tmp_path / machine / "times.csv").write_text("0.1 0.2 0.3 0.4 0.5\n")
        compute = {"distribution": "replay", "file": str(tmp_path / machine / "times.csv")}
        runs.append(simulate(Scenario.of(example("backup_server").table() | {"compute": compute})))
    assert compare(*runs).error_pct.total == 0.0


@pytest.mark.parametrize("key", ["cluster.bandwidth", "cluster.latency", "cluster.nic"])
def test_other_links_are_told_unless_they_are_calibrated(key: str) -> None:
    scenario = example("synchronous_ring")
    changes = {
        "cluster.bandwidth": "1 Gbit/s",
        "cluster.latency": "1 ms",
        "cluster.nic": {"2": {"up": "1 Gbit/s"}},
    }
    measured, predicted = simulate(scenario), simulate(scenario.replacing({key: changes[key]}))
    (told,) = link_differences(predicted, measured)
    assert key in told
    assert compare(predicted, measured).error_pct.total > 0.0
    calibrated = simulate(scenario, Calibration((Exchange("ring", 4, 1e9, 1e-3, 0.0, ()),)))
    assert link_differences(calibrated, measured) == []


def test_swapped_traces_are_told() -> None:
    simulated = simulate(example("synchronous_ring"))
    measured = replace(simulated, metadata=simulated.metadata | {"producer": "measured", "emulation": {}})
    assert of_traces(simulated, measured, []).warnings == []
    (told,) = of_traces(measured, simulated, []).warnings
    assert "swapped" in told


def test_runs_on_different_networks_are_told_first() -> None:
    simulated = simulate(example("synchronous_ring"))
    own_links = replace(simulated, metadata=simulated.metadata | {"producer": "measured"})
    compared = of_traces(simulated, own_links, ["a note"])
    (told,) = compared.warnings
    assert told.startswith("The two runs used different networks: the prediction the scenario's links (10 Gbit/s and")
    assert compared.notes == ["a note"]
    calibrated = replace(simulated, metadata=simulated.metadata | {"calibration": {}})
    assert of_traces(calibrated, own_links, []).warnings == []


def test_the_verdict_names_the_faster_run_by_its_measurement_and_the_signed_errors() -> None:
    ring = simulate(example("synchronous_ring"))
    longer = simulate(example("synchronous_ring").replacing({"compute.mean": "100 ms", "name": "slow"}))
    slow = replace(compare(longer, longer), name="slow")
    told = verdict([slow, compare(ring, ring)])
    saved = 100 * (1 - ring.total_seconds / longer.total_seconds)
    assert told == (
        f"synchronous-ring was faster: {ring.total_seconds:.2f} s, {saved:.0f} % less than slow with "
        f"{longer.total_seconds:.2f} s. The prediction foresaw that; the errors of the predicted totals: slow +0.0 %, "
        "synchronous-ring +0.0 %."
    )
    missed = replace(slow, predicted=summary(ring), error_pct=replace(slow.error_pct, total=-50.04))
    other = replace(compare(ring, ring), predicted=summary(longer))
    assert "The prediction expected slow to be the fastest; " in verdict([missed, other])
    assert "slow -50.0 %" in verdict([missed, other])
    assert verdict([]) == ""


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        ((0.3, -0.3, 0.02), "compute +30.0 %, communication -30.0 %"),
        ((-0.3, 0.16, 0.0), "compute -30.0 %, communication +16.0 %"),  # just over twice the total's
        ((0.06, 0.0, -0.06), "compute +6.0 %, waiting -6.0 %"),
        ((0.04, -0.04, 0.0), ""),  # small
        ((0.3, -0.1, 0.0), ""),  # the total tells it
        ((0.3, -0.04, -0.04), ""),  # nothing large cancels it out
        ((0.0, 0.0, 0.0), ""),
    ],
)  # fmt: skip
def test_the_verdict_on_one_run_tells_of_larger_errors_that_cancel_out(causes: tuple[float, ...], told: str) -> None:
    trace = simulate(example("synchronous_ring"))
    alike = compare(trace, trace)
    parts = dict(zip(alike.error_pct.causes, (trace.total_seconds * share for share in causes), strict=True))
    one = replace(alike, error_pct=replace(alike.error_pct, causes=parts, total=3.21, step_median=12.34))
    tail = f" Larger errors cancel out in the total: {told}." if told else ""
    assert verdict([one]).endswith(f": an error of +3.2 %, and of 12.3 % in a typical step.{tail}")
    without_steps = replace(one, error_pct=replace(one.error_pct, step_median=None))
    assert verdict([without_steps]).endswith(f": an error of +3.2 %.{tail}")


def decided_by(rule: str | None) -> Trace:
    trace = simulate(example("backup_server"))
    return trace if rule is None else replace(trace, metadata=trace.metadata | {"rule": rule})


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (None, None, []),
        ("my_rule.py:Mine", "my_rule.py:Mine", []),
        ("my_rule.py:Mine", "/home/me/my_rule.py:Mine", []),
        ("Mine", "my_rule.py:Mine", []),
        ("my_rule.py:Mine", None, ["by the rule my_rule.py:Mine, the measurement by the policy's own"]),
        (None, "my_rule.py:Mine", ["by the policy's own, the measurement by the rule my_rule.py:Mine"]),
        ("my_rule.py:Mine", "my_rule.py:Other", ["the measurement by the rule my_rule.py:O"]),
        ("my_rule.py:Mine", "other.py:Mine", ["the measurement by the rule other.py:Mine"]),
    ],
)  # fmt: skip
def test_runs_that_other_rules_decided_are_told(ours: str | None, theirs: str | None, told: list[str]) -> None:
    warnings = of_traces(decided_by(ours), decided_by(theirs), []).warnings
    assert len(warnings) == len(told)
    for warning, part in zip(warnings, told, strict=True):
        assert part in warning


def test_a_rule_given_in_python_is_named_in_the_trace() -> None:
    scenario = example("backup_server")
    assert simulate(scenario, rule=Synchronous().rule(5)).metadata["rule"] == "SynchronousRule"
    assert "rule" not in simulate(scenario).metadata


def test_a_calibrated_prediction_compares_with_the_scenario_it_predicts() -> None:
    exchange = Exchange("ring", 4, 1e9, 1e-4, 0.0, ())
    exchange = replace(exchange, model_seconds=2e-3)  # a model's own time, which no scenario's file has
    predicted = simulate(example("synchronous_ring"), Calibration((exchange,)))
    assert predicted.scenario.compute.added_seconds == 2e-3
    assert compare(predicted, simulate(example("synchronous_ring"))).name == "synchronous-ring"


COMPUTING = example("synchronous_ring").replacing(
    {"workload.gradient": None, "workload.model": "mlp", "compute": {"mean": "0 s"}}
)


def computing_for(seconds: float, scenario: Scenario = COMPUTING) -> Trace:
    return simulate(scenario, Calibration((Exchange("ring", 4, 1e9, 1e-4, 0.0, (), model_seconds=seconds),)))


def as_measured(trace: Trace) -> Trace:
    of_run = {key: value for key, value in trace.metadata.items() if key != "calibration"}
    return replace(trace, metadata=of_run | {"producer": "measured"})


def profiled(operations_per_second: float, **policy: Any) -> Scenario:
    profile = transformer_profile(
        layers=2, width=16, heads=2, vocabulary=64, sequence=8, batch=4, operations_per_second=operations_per_second
    )
    return COMPUTING.replacing({"workload": {"profile": profile}, "policy": policy or {"kind": "synchronous"}})


def test_a_profiled_model_that_computes_at_another_speed_is_to_be_profiled_again() -> None:
    (told,) = compute_difference(simulate(profiled(1e9)), as_measured(simulate(profiled(5e8))))
    assert "Cure: distsim profile again" in told


@pytest.mark.parametrize("took", [0.7, 0.79, 1.21, 2.0])
def test_a_run_that_computes_at_another_speed_than_was_measured_before_says_so(took: float) -> None:
    predicted, measured = computing_for(0.02), as_measured(computing_for(0.02 * took))
    (told,) = compute_difference(predicted, measured)
    for trace in (predicted, measured):
        assert show(float(worker_seconds(trace)["compute"].mean()), "second") in told
    assert "Cure: distsim calibrate again" in told
    assert of_traces(predicted, measured, ["saved"]).warnings == [told]


def test_distsims_models_are_calibrated_in_pieces_too() -> None:
    sharded = COMPUTING.replacing({"policy": {"kind": "sharded", "stage": 1}})
    assert compute_difference(computing_for(0.02, sharded), as_measured(computing_for(0.03, sharded)))


def test_nothing_is_said_of_computing_that_was_predicted_well_or_not_at_all() -> None:
    slow = as_measured(computing_for(0.04))
    assert compute_difference(computing_for(0.02), as_measured(computing_for(0.0235))) == []
    assert compute_difference(simulate(COMPUTING), slow) == []
    drawn = COMPUTING.replacing({"compute.mean": "20 ms"})
    assert compute_difference(simulate(drawn), as_measured(simulate(drawn.replacing({"compute.mean": "60 ms"})))) == []
    predicted, measured = (simulate(profiled(speed, kind="sharded", stage=1)) for speed in (1e9, 5e8))
    assert compute_difference(predicted, as_measured(measured)) == []
    alone = profiled(1e9).workload.profile
    assert alone is not None
    on_cpu = COMPUTING.replacing({"workload": {"profile": replace(alone, device="cpu")}})
    late = as_measured(simulate(on_cpu.replacing({"compute.mean": "1 s"})))
    assert compute_difference(simulate(on_cpu), late) == [], "nothing is known of the cores that workers share"
    made_up = example("synchronous_ring")
    other = as_measured(simulate(made_up.replacing({"compute.mean": "100 ms"})))
    assert compute_difference(simulate(made_up), other) == []
