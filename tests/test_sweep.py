"""Sweeps: every combination once, on any executor, resumed without recomputing, and idle keys named."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from pydantic_core import PydanticSerializationError

import distsim
from distsim import sweep as sweep_module
from distsim.calibration import Calibration, Exchange
from distsim.cli.main import main
from distsim.errors import InputError
from distsim.examples import example
from distsim.progress import Phase
from distsim.scenario import Scenario
from distsim.sweep import PIECE_WORKER_STEPS, RESULTS, _read, combinations, parse_values, pieces, sweep, without_effect
from distsim.trace import Trace

SMALL = example("backup_server").replacing({"steps": 5})
GRID = {"policy.backups": [0, 2, 5], "compute.cv": [0.1, 0.5]}


def plain(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows)


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("policy.backups=0:4", "policy.backups", [0, 1, 2, 3, 4]),
        ("steps=10:2:-4", "steps", [10, 6, 2]),
        ("steps=10:50:20", "steps", [10, 30, 50]),
        ("compute.cv=0.1, 0.3", "compute.cv", [0.1, 0.3]),
        ("policy.cancel=true,false", "policy.cancel", [True, False]),
        ('name="a",b', "name", ["a", "b"]),
        ("cluster.latency=50 us,1 ms", "cluster.latency", ["50 us", "1 ms"]),
    ],
)
def test_values_are_read_as_in_a_scenario(text: str, key: str, values: list[Any]) -> None:
    assert parse_values(text) == (key, values)


@pytest.mark.parametrize("text", ["policy.backups", "=1", "steps=", "steps=4:1", "steps=1:4:0"])
def test_values_that_make_no_sense(text: str) -> None:
    with pytest.raises(InputError, match=r"--vary = .*Cure:"):
        parse_values(text)


@pytest.mark.parametrize("bound", ["--5", "9" * 5000, "[" * 5000, "1e3", "+1", "1_0", "²", "٣"])
def test_what_is_no_whole_number_is_no_bound(bound: str) -> None:
    assert parse_values(f"name={bound}:7") == ("name", [f"{bound}:7"])


@pytest.mark.parametrize(
    "values", ["1:100000000", "1:100001", "-100000:0", "5:-999999999999999999:-1", f"1:{10**29}:3"]
)
def test_more_values_than_a_sweep_may_have_are_refused_before_they_are_made(values: str) -> None:
    rule = r"--vary = 'steps=.*': makes \d+ combinations, and a sweep may have 100000\. Cure: "
    with pytest.raises(InputError, match=rule):
        parse_values(f"steps={values}")


def test_more_combinations_than_a_sweep_may_have_are_refused() -> None:
    assert len(parse_values("steps=1:100000")[1]) == len(parse_values("steps=1:200000:2")[1]) == 100_000
    rule = r"--vary = 'steps, seed': makes 1000 x 101 combinations, and a sweep may have 100000\. Cure: "
    with pytest.raises(InputError, match=rule):
        sweep(SMALL, {"steps": range(1, 1001), "seed": range(101)})


def test_every_combination_is_one_row() -> None:
    rows = sweep(SMALL, GRID)
    assert [(row["policy.backups"], row["compute.cv"]) for row in rows] == [
        (backups, cv) for backups in (0, 2, 5) for cv in (0.1, 0.5)
    ]
    for row in rows:
        assert row.keys() == {*GRID, *RESULTS}
        possible = row["policy.backups"] < 5
        assert (row["error"] is None) == possible
        if possible:
            one = SMALL.replacing({key: row[key] for key in GRID})
            assert row["total_seconds"] == distsim.simulate(one).total_seconds
        else:
            assert "backups = 5 must be fewer" in row["error"]
            assert row["total_seconds"] is None


def test_a_sweep_without_a_possible_combination_is_refused() -> None:
    with pytest.raises(InputError, match=r"no combination of the varied values is possible.*backups = 7"):
        combinations(SMALL, {"policy.backups": [7, 8]})
    with pytest.raises(InputError, match="backupz"):
        combinations(SMALL, {"policy.backupz": [1]})


@pytest.mark.parametrize("together", [1, 4])
def test_a_process_pool_gives_the_same_rows(together: int) -> None:
    with ProcessPoolExecutor(2) as pool:
        assert plain(sweep(SMALL, GRID, executor=pool, together=together)) == plain(sweep(SMALL, GRID))


def test_short_runs_are_one_piece_of_work_and_long_runs_are_not() -> None:
    long = SMALL.replacing({"steps": PIECE_WORKER_STEPS})
    waiting = dict(enumerate([SMALL] * 5 + [long] * 2 + [SMALL] * 3))
    found = list(pieces(waiting, together=4))
    assert found == [[0, 1, 2, 3], [4], [5], [6], [7, 8, 9]]
    assert list(pieces(waiting, together=1)) == [[number] for number in waiting]
    quarter = SMALL.replacing({"steps": PIECE_WORKER_STEPS // (4 * SMALL.cluster.workers)})
    assert [len(piece) for piece in pieces(dict.fromkeys(range(9), quarter), together=100)] == [4, 4, 1]


def calibration(bandwidth: float = 2e8, measured_bytes: float = 1e9) -> Calibration:
    """Of a server with the workers of `SMALL`."""
    points = ((measured_bytes, 1e-2),)
    return Calibration((Exchange("parameter_server", SMALL.cluster.workers, bandwidth, 1e-3, 0.0, points),))


def test_a_sweep_with_a_calibration_predicts_as_simulate_does(tmp_path: Path, run: Any) -> None:
    known, workers = calibration(), SMALL.cluster.workers
    known.save(tmp_path / "machine.json")
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    vary = {"seed": [1, 2], "cluster.workers": [workers, workers + 1]}
    options = ["--vary", "seed=1,2", "--vary", f"cluster.workers={workers},{workers + 1}", "--workers", 1, "--json"]
    code, out, err = run("sweep", tmp_path / "s.toml", *options, "--calibration", tmp_path / "machine.json")
    assert (code, err.count("\n")) == (0, 0)
    rows = json.loads(out)
    assert rows == sweep(SMALL, vary, known)
    for row in rows:
        changes = {key: row[key] for key in vary}
        if row["cluster.workers"] == workers:
            expected = distsim.simulate(SMALL.replacing(changes), known).total_seconds
            assert row["total_seconds"] == expected != distsim.simulate(SMALL.replacing(changes)).total_seconds
        else:
            assert f"workers = {workers + 1}: the calibration holds" in row["error"]


def test_a_calibrations_warnings_are_told_once(tmp_path: Path, run: Any) -> None:
    calibration(measured_bytes=1e6).save(tmp_path / "machine.json")
    (tmp_path / "s.toml").write_text(SMALL.replacing({"workload.gradient": "1 GB"}).dumps())
    options = ["--vary", "seed=1:3", "--workers", 1, "--calibration", tmp_path / "machine.json"]
    code, _, err = run("sweep", tmp_path / "s.toml", *options)
    assert code == 0
    assert err.count("are far beyond the 1 MB") == err.count("\n") == 1


def test_a_journal_of_another_calibration_is_not_used(tmp_path: Path) -> None:
    journal, vary = tmp_path / "journal", {"seed": [1, 2]}
    for known in (None, calibration(), calibration(3e8)):
        assert sweep(SMALL, vary, known, journal=journal) == sweep(SMALL, vary, known)
    assert len(list(_read(journal))) == 6


def replaying(folder: Path, times: str) -> Scenario:
    """`SMALL` with the times of a file in the folder."""
    (folder / "times.csv").write_text(times)
    return Scenario.of(SMALL.table() | {"compute": {"distribution": "replay", "file": "times.csv"}}, folder=folder)


def test_a_journal_of_other_replayed_times_is_not_used(tmp_path: Path) -> None:
    journal, vary = tmp_path / "journal", {"seed": [1]}
    totals = [
        sweep(replaying(tmp_path, times), vary, journal=journal)[0]["total_seconds"] for times in ("0.1\n", "0.20\n")
    ]
    assert totals[1] > 1.5 * totals[0]
    assert len(list(_read(journal))) == 2


def test_replayed_times_travel_with_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's workers may run in another folder, or on a machine without the file."""
    monkeypatch.chdir(tmp_path)
    scenario = pickle.loads(pickle.dumps(replaying(Path(), "0.1 0.2 0.3 0.4 0.5\n")))
    (tmp_path / "times.csv").unlink()
    assert sweep_module.run_some([scenario])[0]["error"] is None
    assert "0.4" not in scenario.dumps()  # a saved trace names the file alone


def test_a_run_that_is_refused_is_a_row_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a run that does not fit into the memory of the machine: the next machine may have more."""
    true_simulate, journal, vary = sweep_module.simulate, tmp_path / "journal", {"seed": [1, 2]}

    def refusing(scenario: Scenario, known: Calibration | None) -> Trace:
        if scenario.seed == 2:
            raise InputError("too large")
        return true_simulate(scenario, known)

    monkeypatch.setattr(sweep_module, "simulate", refusing)
    rows = sweep(SMALL, vary, journal=journal)
    assert [row["error"] for row in rows] == [None, "too large"]
    assert rows[1]["total_seconds"] is None
    with pytest.raises(InputError, match="no combination of the varied values is possible; the first: too large"):
        sweep(SMALL, {"seed": [2]})
    monkeypatch.setattr(sweep_module, "simulate", true_simulate)
    assert sweep(SMALL, vary, journal=journal) == sweep(SMALL, vary)


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journal"
    impossible, kept = 2, 3

    def interrupt(phase: Phase) -> None:
        if phase.done == impossible + kept:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(SMALL, GRID, journal=journal, progress=interrupt)
    assert len(journal.read_text().splitlines()) == kept
    with journal.open("a") as stream:
        stream.write('["cut off')  # an interrupt in the middle of a line
    computed = []
    true_run = sweep_module.run_one
    monkeypatch.setattr(sweep_module, "run_one", lambda *given: computed.append(given) or true_run(*given))
    seen: list[Phase] = []
    rows = sweep(SMALL, GRID, journal=journal, progress=seen.append)
    assert len(computed) == 4 - kept
    assert plain(rows) == plain(sweep(SMALL, GRID))
    assert [(phase.doing, phase.share) for phase in seen] == [("run 5 of 6", 5 / 6), ("run 6 of 6", 1.0)]
    assert seen[0].seconds is None
    assert seen[-1].seconds
    assert len(list(_read(journal))) == 4  # so that a second interrupt loses nothing either


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGKILL, -9), pytest.param(signal.SIGTERM, -15, marks=pytest.mark.more)],
)
def test_a_command_that_is_ended_leaves_no_process_and_a_journal_to_go_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    mark = uuid.uuid4().hex
    monkeypatch.setenv("DISTSIM_TEST_MARK", mark)

    def started(seeds: int) -> subprocess.Popen[str]:
        options = ["--vary", f"seed=1:{seeds}", "--workers", "2", "--out", "t.csv", "--yes"]
        command = [sys.executable, "-m", "distsim", "sweep", "s.toml", *options]
        return subprocess.Popen(
            command, cwd=tmp_path, start_new_session=True, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    process = started(seeds=20_000)
    journal = tmp_path / "t.csv.journal"
    assert came_true(lambda: journal.exists() and journal.stat().st_size > 5000, 120.0), "no row came"
    # Ctrl-C is for all processes of the terminal's foreground group.
    (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
    process.wait(30.0)
    assert came_true(lambda: marked(mark) == 0, 10.0), "processes go on without the command"
    _, said = process.communicate()
    interrupted = number is signal.SIGINT
    assert (process.returncode, said) == (code, "\ndistsim: interrupted\n" if interrupted else "")
    kept = len(list(_read(journal)))
    again = started(seeds=kept)
    assert (again.communicate()[1], again.returncode) == ("", 0)
    assert len(pd.read_csv(tmp_path / "t.csv")) == kept > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", "t.csv"]


def came_true(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within so many seconds."""
    give_up = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return true


def marked(mark: str) -> int:
    """How many living processes have this mark in their environment, apart from this one."""
    found = 0
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found += process.environ().get("DISTSIM_TEST_MARK") == mark
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), ValueError("other")])
def test_ctrl_c_while_pydantic_writes_is_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cause: BaseException
) -> None:
    def interrupted(**_options: object) -> None:
        raise PydanticSerializationError("as pydantic wraps it") from cause

    monkeypatch.setattr("distsim.cli.main.distsim.main", interrupted)
    with pytest.raises((SystemExit, PydanticSerializationError)) as end:
        main()
    if isinstance(cause, KeyboardInterrupt):
        assert isinstance(end.value, SystemExit)
        assert (end.value.code, capsys.readouterr().err) == (130, "distsim: interrupted\n")
    else:
        assert isinstance(end.value, PydanticSerializationError)


def test_a_key_that_changes_nothing_is_named() -> None:
    vary = {"workload.batch": [1, 8], "compute.cv": [0.1, 0.5]}
    assert without_effect(sweep(SMALL, vary), vary) == ["workload.batch"]
    single = {"workload.batch": [1]}
    assert without_effect(sweep(SMALL, single), single) == []
    one_possible = {"policy.backups": [1, 5], "seed": [1, 2]}
    assert without_effect(sweep(SMALL, one_possible), one_possible) == []


def test_every_reason_is_told_once_under_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    varied = ["--vary", "policy.kind=backup,synchronous,none", "--vary", "seed=1,2", "--out", "table.csv"]
    monkeypatch.setattr(sys, "argv", ["distsim", "sweep", "s.toml", *varied, "--workers", "1"])
    monkeypatch.chdir(tmp_path)
    main()
    said = capsys.readouterr()
    assert said.err == ""
    reasons = [line.strip() for line in said.out.splitlines() if "Cure: " in line]
    assert len(reasons) == 2
    assert reasons[0].startswith(
        "impossible: scenario with policy.kind = 'synchronous', seed = 1: [policy] backups = 1: is not a key of"
    )
    assert reasons[1].startswith("impossible: scenario with policy.kind = 'none', seed = 1: [policy] kind = 'none' is")
    written = pd.read_csv("table.csv")["error"]
    assert written[:2].isna().all()
    assert written[2:].str.contains("Cure: ").all()


def test_a_flood_of_reasons_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    arguments = ["sweep", str(tmp_path / "s.toml"), "--vary", "policy.backups=1:17", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", ["distsim", *arguments])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert sum("impossible: scenario with" in line for line in lines) == 10
    assert lines[-1].strip() == "and 3 more reasons, which --json and --out tell"


def test_a_long_table_is_shown_by_its_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    arguments = ["sweep", str(tmp_path / "s.toml"), "--vary", "seed=1:203", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", ["distsim", *arguments])
    main()
    text = capsys.readouterr().out
    seeds = [int(found) for found in re.findall(r"^\W*(\d+)\b", text, re.MULTILINE)]
    assert seeds[:-1] == [*range(1, 101), *range(104, 204)]
    assert seeds[-1] == 3
    assert "3 rows in the middle are left out here: --out and --json have all" in text


def test_a_narrow_terminal_cuts_no_cell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    varied = ["--vary", "policy.backups=0:1", "--vary", "compute.cv=0.125", "--vary", "cluster.workers=4,8"]
    monkeypatch.setattr(sys, "argv", ["distsim", "sweep", str(tmp_path / "s.toml"), *varied, "--workers", "1"])
    monkeypatch.setattr("distsim.cli.output.PIPE_WIDTH", 80)
    main()
    text = capsys.readouterr().out
    assert "…" not in text
    for part in ("policy.", "backups", "compute.", "cv", "cluster.", "workers", "dropped", "0.125"):
        assert re.search(rf"(^|\s){re.escape(part)}(\s|$)", text), text


def test_a_sweep_over_checkpoints_has_goodput_in_every_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    failures = {"mean_time_between": "4 s", "checkpoint_every": "1 s", "checkpoint_cost": "20 ms"}
    scenario = SMALL.replacing({"steps": 20, "failures": failures})
    (tmp_path / "s.toml").write_text(scenario.dumps())
    monkeypatch.chdir(tmp_path)
    every = ["100 ms", "500 ms"]
    varied = ["--vary", f"failures.checkpoint_every={','.join(every)}", "--workers", "1"]

    def said(command: str, *options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["distsim", command, *options])
        main()
        return capsys.readouterr().out

    table = said("sweep", "s.toml", *varied, "--out", "t.csv")
    assert "goodput (%)" in table
    rows = json.loads(said("sweep", "s.toml", *varied, "--json"))
    written = pd.read_csv("t.csv").to_dict("records")
    for row, line, interval in zip(rows, written, every, strict=True):
        one = distsim.summary(distsim.simulate(scenario.replacing({"failures.checkpoint_every": interval})))
        assert row["goodput"] == one.goodput == pytest.approx(line["goodput"])
        assert 0.0 < one.goodput < 1.0
        assert (row["failures"], line["failures"]) == (one.failures, one.failures)
        for kind, share in one.paused_shares.items():
            assert row[f"paused_shares_{kind}"] == share == pytest.approx(line[f"paused_shares_{kind}"])
        assert f"{100 * one.goodput:.4g}" in table
    assert "Goodput of 2 combinations: " in said("figure", "heat-map", "t.csv", "--metric", "goodput", "-o", "x.html")
    Path("s.toml").write_text(SMALL.dumps())
    assert "goodput" not in said("sweep", "s.toml", "--vary", "seed=1,2", "--workers", "1")


def test_a_journal_of_other_columns_is_computed_anew(tmp_path: Path) -> None:
    journal, vary = tmp_path / "journal", {"seed": [1, 2]}
    rows = sweep(SMALL, vary, journal=journal)
    kept = [(key, {"total_seconds": 1.0}) for key, _ in _read(journal)]
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in kept))
    assert plain(sweep(SMALL, vary, journal=journal)) == plain(rows)


def test_a_varied_table_of_the_name_of_a_metric_keeps_its_values() -> None:
    """`failures` is a table of the scenario, and a count of each run."""
    values = [{"mean_time_between": time, "checkpoint_every": "1 s"} for time in ("2 s", "4 s")]
    assert [row["failures"] for row in sweep(SMALL, {"failures": values})] == values


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_table_is_written_and_the_journal_removed(
    suffix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    out = tmp_path / f"table{suffix}"
    arguments = ["sweep", "s.toml", "--vary", "policy.backups=0:2", "--vary", "workload.batch=1,2", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["distsim", *arguments, "--workers", "1"])
    monkeypatch.chdir(tmp_path)
    main()
    said = capsys.readouterr()
    assert "varying workload.batch changed nothing" in said.err
    assert "step, median (ms)" in said.out
    frame = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert frame["policy.backups"].tolist() == [0, 0, 1, 1, 2, 2]
    expected = [row["total_seconds"] for row in sweep(SMALL, {"policy.backups": [0, 1, 2], "workload.batch": [1, 2]})]
    assert frame["total_seconds"].tolist() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", out.name]


def test_parquet_takes_values_of_several_kinds_as_text(run: Any, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    values = ["--vary", "cluster.bandwidth=1e9,10 Gbit/s", "--vary", "compute.cv=0.5,1", "--workers", 1]
    code, *_ = run("sweep", tmp_path / "s.toml", *values, "--out", tmp_path / "t.parquet")
    assert code == 0
    frame = pd.read_parquet(tmp_path / "t.parquet")
    assert frame["cluster.bandwidth"].tolist() == ["1000000000.0"] * 2 + ["10 Gbit/s"] * 2
    assert frame["compute.cv"].tolist() == [0.5, 1.0] * 2


def test_parquet_without_pyarrow_names_its_extra(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    monkeypatch.setattr("distsim.extras.installed", lambda package: package != "pyarrow")
    code, _, err = run("sweep", tmp_path / "s.toml", "--vary", "seed=1,2", "--out", tmp_path / "t.parquet")
    assert code == 2
    assert 'needs pyarrow, which is not installed. Cure: pip install "distsim-course[cluster]"' in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--vary", "steps=1", "--calibration", "absent.json"], "calibration file"),
        (["--vary", "steps=1:2", "--out", "table.txt"], "must end in .csv or .parquet"),
        (["--vary", "steps=1:2", "--out", "absent/table.csv"], "cannot be written"),
        (["--vary", "steps"], "--vary"),
        (["--vary", "steps=1", "--scheduler", "tcp://127.0.0.1:9"], "does not answer"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bad_arguments_end_with_2(
    arguments: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "s.toml").write_text(SMALL.dumps())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["distsim", "sweep", "s.toml", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert expected in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


@pytest.mark.parametrize("line", ["5", "[]", '["key", 3]', "null", '{"key": 1}', '["cut of'])
def test_a_line_of_the_journal_that_is_no_row_is_left_out(tmp_path: Path, line: str) -> None:
    journal = tmp_path / "out.csv.journal"
    journal.write_text(f'["one", {{"total": 1.0}}]\n{line}\n')
    assert list(_read(journal)) == [("one", {"total": 1.0})]
