"""The explorer of one's own cluster: which calibration it takes, what it predicts with it, and what it measures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distsim.calibration import Calibration, Exchange, far_beyond, fitted
from distsim.calibration.samples import Sample
from distsim.errors import InputError
from distsim.examples import example
from distsim.explorers import real_run
from distsim.explorers.explorer import Explorer
from distsim.explorers.your_cluster import UPDATES, Parameters, explore, explorer, known, scenarios
from distsim.runtime.machine import check_memory, crowding
from distsim.simulation import simulate

SECONDS = 120.0
LATENCY, BYTES_PER_SECOND = 2e-3, 50e6  # 400 Mbit/s, of the tests' machine: much slower than the links that are assumed


def calibration(*, emulated: bool = False) -> Calibration:
    """A machine with cores enough for all, whose ring and server keep to latency and bandwidth exactly."""
    samples: list[Sample] = []
    for size in (16e3, 1e6, 4e6):
        for workers in (1, 2, 4):
            ring = 2 * (workers - 1) * (LATENCY + size / workers / BYTES_PER_SECOND)
            server = 2 * (LATENCY + workers * size / BYTES_PER_SECOND)
            if workers > 1:
                samples.append(("all_reduce", None, workers, size, np.full(3, ring)))
            samples.append(("parameter_server", None, workers, size, np.full(3, server)))
            samples.append(("apply", None, workers, size, np.full(3, 1e-4)))
    return Calibration((), fitted(samples, cores=64, emulated=emulated))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the tests' machine is saved."""
    path = tmp_path / "machine.json"
    calibration().save(path)
    return path


def text(widget: Any) -> str:
    """What an HTML widget reads like."""
    return unescape(re.sub(r"<[^>]+>", " ", widget.value)).strip()


def row_of(parameters: Parameters) -> dict[str, Any]:
    """Of the table, which has one."""
    (row,) = explore(parameters).table
    return dict(row)


def test_without_a_file_the_scenarios_own_links_are_assumed_and_that_is_said() -> None:
    shown = explore(Parameters())
    assert shown.summary.startswith("No calibration is loaded: links of 10 Gbit/s and 50 us are assumed.")
    (row,) = shown.table
    assert (row["latency (us)"], row["bandwidth (MB/s)"]) == pytest.approx((50.0, 1250.0))
    assert row["links measured at"] == "nowhere: assumed"
    assert row["largest error of their line (%)"] is None
    assert row["total (s)"] == simulate(scenarios(Parameters())[0]).total_seconds


@pytest.mark.parametrize("updates", UPDATES)
def test_a_file_gives_the_links_that_were_measured(file: Path, updates: str) -> None:
    parameters = Parameters(str(file), updates, workers=2, gradient_mib=1.0)
    row = row_of(parameters)
    assert row["latency (us)"] == pytest.approx(1e6 * LATENCY, rel=1e-3)
    assert row["bandwidth (MB/s)"] == pytest.approx(1e-6 * BYTES_PER_SECOND, rel=1e-3)
    assert row["links measured at"] == "2 workers"
    assert row["largest error of their line (%)"] == pytest.approx(0.0, abs=0.01)
    assert row["total (s)"] == simulate(scenarios(parameters)[0], Calibration.load(file)).total_seconds
    assert row["total (s)"] > 1.2 * row_of(replace(parameters, calibration=""))["total (s)"]


def test_a_number_of_workers_that_was_not_measured_takes_the_line_through_all(file: Path) -> None:
    assert row_of(Parameters(str(file), workers=3))["links measured at"] == "2, 4 workers"
    assert row_of(Parameters(str(file), "asynchronous", workers=3))["links measured at"] == "1, 2, 4 workers"
    assert row_of(Parameters(str(file), "asynchronous", workers=1))["links measured at"] == "1 worker"


def test_an_exchange_measured_at_just_this_number_goes_before_the_lines(file: Path) -> None:
    own = Exchange("ring", 3, 1e9, 1e-3, 0.0, ((4e6, 0.01),))
    Calibration((own,), calibration().machine).save(file)
    row = row_of(Parameters(str(file), workers=3))
    assert (row["latency (us)"], row["bandwidth (MB/s)"]) == pytest.approx((1e3, 1e3))
    assert (row["links measured at"], row["largest error of their line (%)"]) == ("3 workers", None)
    assert row_of(Parameters(str(file), workers=2))["bandwidth (MB/s)"] == pytest.approx(50.0, rel=1e-3)


def test_a_step_of_constant_compute_takes_what_the_formula_says(file: Path) -> None:
    parameters = Parameters(str(file), workers=4, gradient_mib=1.0, mean_ms=20.0, cv=0.0)
    ring = 2 * 3 * (LATENCY + 2**20 / 4 / BYTES_PER_SECOND)
    assert row_of(parameters)["step time, median (ms)"] == pytest.approx(1e3 * (0.02 + ring), rel=2e-3)


def test_the_curve_is_of_throughputs_with_the_chosen_number_marked(file: Path) -> None:
    parameters = Parameters(str(file), workers=6)
    shown = explore(parameters)
    ideal, curve, marked = (trace for trace in shown.figure.data if trace.xaxis in (None, "x"))
    assert ideal.name == "ideal"
    assert list(curve.x) == [1, 2, 4, 6, 8, 16]
    alone, chosen = (row_of(replace(parameters, workers=count))["gradients per second"] for count in (1, 6))
    assert marked.name == "6 workers"
    assert (list(marked.x), list(marked.y)) == ([6], [pytest.approx(chosen / alone)])
    assert curve.y[3] == marked.y[0]
    assert f"6 workers give {chosen:.1f} gradients a second, {chosen / alone:.3g} times" in shown.summary


def test_what_is_far_beyond_the_measured_is_said(file: Path) -> None:
    near, far = Parameters(str(file), workers=4), Parameters(str(file), workers=4, gradient_mib=64.0)
    (warning,) = far_beyond(Calibration.load(file), scenarios(far)[0])
    assert warning[1:] in explore(far).summary
    assert "the prediction is a guess" not in explore(near).summary
    assert explore(near).summary.endswith("The curve is a guess at 16 workers, which is far beyond what was measured.")
    assert "far beyond" not in explore(replace(far, calibration="")).summary


def damaged(path: Path) -> str:
    path.write_text(path.read_text()[:-20])
    return str(path)


def of_another_kind(path: Path) -> str:
    path.write_text(json.dumps({"scenario": 1}))
    return str(path)


def of_one_exchange(path: Path) -> str:
    Calibration((Exchange("ring", 4, 1.1e9, 1e-4, 0.0, ((1e6, 0.1),)),)).save(path)
    return str(path)


@pytest.mark.parametrize(
    ("spoil", "rule", "cure"),
    [
        (lambda path: str(path) + "x", "cannot be read (No such file", "name a file that distsim calibrate wrote"),
        (lambda path: str(path.parent), "cannot be read (Is a directory", "name a file that distsim calibrate wrote"),
        (lambda path: f"{path}\0", "cannot be read", "name a file that distsim calibrate wrote"),
        (lambda _: "~nobody-has-this-name/machine.json", "home", "write the whole path"),
        (damaged, "is not a calibration that distsim wrote", "name a file that distsim calibrate wrote"),
        (of_another_kind, "is not a calibration that distsim wrote", "name a file that distsim calibrate wrote"),
        (of_one_exchange, "holds single exchanges only", "make one with distsim calibrate --out machine.json"),
    ],
    ids=["missing", "a folder", "no name", "no home", "damaged", "of another kind", "without a machine"],
)
def test_a_file_that_cannot_be_taken_is_refused_with_a_cure(file: Path, spoil: Any, rule: str, cure: str) -> None:
    view = explorer()
    before = view.shown
    view.controls["calibration"].value = name = spoil(file)
    assert rule in text(view.message)
    assert f"Cure: {cure}" in text(view.message)
    assert view.shown is before
    assert view.real_run.calibration is None
    with pytest.raises(InputError, match="Cure: "):
        explore(Parameters(name))
    view.controls["calibration"].value = ""
    assert text(view.message) == ""


def test_a_file_that_says_nothing_of_a_server_is_refused_for_one(tmp_path: Path) -> None:
    ring = [("all_reduce", None, 2, size, np.full(3, size / 1e9)) for size in (1e5, 1e6)]
    Calibration((), fitted(ring, cores=2)).save(tmp_path / "ring.json")  # type: ignore[arg-type] # None, str and so on
    assert explore(Parameters(str(tmp_path / "ring.json"))).table
    with pytest.raises(InputError, match=r"holds all-reduce, backend.*Cure: run distsim calibrate"):
        explore(Parameters(str(tmp_path / "ring.json"), "asynchronous"))


def test_spaces_around_a_path_and_a_home_are_no_part_of_its_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(file.parent))
    assert known(Parameters(f" ~/{file.name} ")) == Calibration.load(file)
    assert known(Parameters("  ")) is None


def test_a_backup_for_nobody_is_refused_and_the_curve_begins_without_one() -> None:
    view = explorer()
    view.controls["updates"].value = "one backup worker"
    assert view.shown is not None
    assert list(view.shown.figure.data[2].x) == [1, 2, 4, 8, 16]
    view.controls["workers"].value = 1
    assert "must be fewer than the 1 worker" in text(view.message)
    view.controls["updates"].value = "asynchronous"
    assert text(view.message) == ""
    assert view.shown.summary.count("1 worker gives") == 1


def test_every_control_changes_the_prediction_or_is_replaced_by_what_was_measured(file: Path) -> None:
    other = {
        "updates": "asynchronous", "workers": 5, "gradient_mib": 16.0, "mean_ms": 100.0, "cv": 0.6, "steps": 60,
        "seed": 8, "gbit_per_second": 1.0, "latency_us": 200.0, "calibration": str(file),
    }  # fmt: skip
    view = explorer()
    assert set(other) == set(view.controls)
    for field, value in other.items():
        assert view.shown is not None
        before = view.shown.table
        view.controls[field].value = value
        assert text(view.message) == ""
        assert view.shown.table != before, field
    assert text(view.changed).startswith(f"Changed calibration file from nothing to {file}: asynchronous: ")
    view.controls["gbit_per_second"].value = 25.0  # what was measured stands in its place
    assert text(view.changed).endswith("no number in the table changed.")


def test_the_real_run_is_predicted_with_the_calibration_that_is_shown(file: Path) -> None:
    view = explorer()
    assert view.real_run.calibration is None
    view.controls["calibration"].value = str(file)
    assert view.real_run.calibration == Calibration.load(file)
    assert view.real_run.scenario == scenarios(Parameters())[0]


class CalledError(Exception):
    """Instead of a run."""


@pytest.mark.parametrize(
    ("emulated", "hindrance", "run"),
    [
        (None, None, "predict_and_emulate"),
        (None, "no right to", "predict_and_measure"),
        (False, None, "predict_and_measure"),
        (False, "no right to", "predict_and_measure"),
        (True, None, "predict_and_emulate"),
    ],
)
def test_a_run_has_such_links_as_its_calibration_was_made_on(
    emulated: bool | None, hindrance: str | None, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = None if emulated is None else calibration(emulated=emulated)
    for name in ("predict_and_measure", "predict_and_emulate"):
        monkeypatch.setattr(real_run, name, _called(name))
    monkeypatch.setattr(real_run, "_cannot_emulate", lambda _: hindrance)
    with pytest.raises(CalledError) as found:
        real_run.run_for_real(scenarios(Parameters())[0], lambda *_: None, given)
    assert found.value.args == (run, given)


def _called(name: str) -> Any:
    def run(_scenario: Any, calibration: Calibration | None = None, **_options: Any) -> None:
        raise CalledError(name, calibration)

    return run


def test_emulated_links_that_cannot_be_imposed_here_end_the_run_before_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(real_run, "_cannot_emulate", lambda _: "no right to. Cure: ask for it")
    with pytest.raises(InputError, match=r"made on emulated links.*cannot emulate the scenario's links: no right to"):
        real_run.run_for_real(scenarios(Parameters())[0], lambda *_: None, calibration(emulated=True))


@pytest.mark.real
@pytest.mark.more
@pytest.mark.alone
def test_predicted_from_the_file_stands_beside_what_is_measured_here(file: Path) -> None:
    view = explorer()
    for field, value in {"workers": 2, "steps": 10, "mean_ms": 20.0, "calibration": str(file)}.items():
        view.controls[field].value = value
    view.real_run.button.click()
    assert view.real_run.background.wait(SECONDS)
    run = view.real_run.found
    assert run is not None, text(view.real_run.why)
    assert view.shown is not None
    assert run.predicted.total_seconds == view.shown.table[0]["total (s)"]
    assert run.measured.producer == "measured"
    assert len(run.measured.updates) == 10
    assert "links calibrated on this machine for ring and 2 workers: 400 Mbit/s" in text(view.real_run.caption)
    assert "moved" not in text(view.real_run.heading)
    view.controls["calibration"].value = ""
    assert "The controls have been moved since." in text(view.real_run.heading)


def test_the_view_is_of_these_parameters() -> None:
    view: Explorer[Parameters] = explorer()
    assert view.parameters == Parameters()
    assert "distsim calibrate --out machine.json" in " ".join(text(child) for child in view.children[:1])


def test_the_button_and_the_commands_agree_on_what_this_machine_can_run() -> None:
    backup = example("backup_server")
    assert real_run.obstacle(backup) is None
    assert real_run.obstacle(backup.replacing({"cluster.workers": 1000})) == crowding(1001)
    huge = backup.replacing({"workload.gradient": "400 TiB"})
    with pytest.raises(InputError) as refused:
        check_memory(huge, 6)
    assert "needs at least" in (real_run.obstacle(huge) or "")
    assert (real_run.obstacle(huge) or "").startswith(str(refused.value).partition(" of memory")[0])
