"""The command line: JSON as the contract says, messages without tracebacks, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import distsim
from distsim.accuracy.claim import Claim
from distsim.accuracy.simgrid import SHIPPED
from distsim.accuracy.tables import PRINTED, Table
from distsim.calibration import Calibration, MachineCalibration, fitted
from distsim.doctor import examine
from distsim.examples import NAMES, example
from distsim.metrics.table import METRICS
from distsim.speed.catalogue import one_ring
from distsim.speed.figure import Duration
from distsim.trace import Trace

Run = Callable[..., tuple[int, str, str]]
SUMMARY_KEYS = {metric.name.partition(".")[0] for metric in METRICS if metric.applies is None}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The example scenarios as files."""
    paths = {name: tmp_path / f"{name}.toml" for name in NAMES}
    for name, path in paths.items():
        path.write_text(example(name).dumps())
    return paths


def test_the_keys_of_the_contract_stay() -> None:
    assert {
        "step_seconds", "total_seconds", "updates", "dropped_gradients", "mean_staleness", "idle_share",
        "exposed_communication_share", "bytes_per_link_max",
    } <= SUMMARY_KEYS  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_simulate_prints_the_contracts_object(run: Run, files: dict[str, Path], name: str) -> None:
    code, out, err = run("simulate", files[name], "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found.keys() == SUMMARY_KEYS
    assert found["step_seconds"].keys() == {"median", "mean", "p90"}
    assert found["updates"] == 50


def test_simulate_prints_a_plain_table_in_a_pipe(run: Run, files: dict[str, Path]) -> None:
    code, out, _ = run("simulate", files["backup_server"])
    assert code == 0
    assert "step time, median" in out
    assert "\x1b" not in out


LOCAL = {"policy": {"kind": "local_sgd", "period": 4}}
DDP = {"policy": {"kind": "ddp", "accumulate": 2}}
NODES = {"cluster.nodes": {"per_node": 2, "bandwidth": "100 Gbit/s", "latency": "1 us"}}


@pytest.mark.parametrize(
    ("changes", "notes"),
    [
        (LOCAL, ["step time: from one update to the next, and an update comes every 4 local steps (policy.period)"]),
        (DDP, ["step time: from one update to the next, and an update comes every 2 local steps (policy.accumulate)"]),
        ({"policy.kind": "ddp"}, []),
        ({"cluster.workers": 1}, ["busiest link –: one worker alone sends nothing"]),
        (NODES, ["busiest link: a NIC's; what stays inside a node is not counted"]),
    ],
)
def test_what_may_be_taken_amiss_is_told_under_the_table(
    run: Run, tmp_path: Path, changes: dict[str, object], notes: list[str]
) -> None:
    (tmp_path / "s.toml").write_text(example("synchronous_ring").replacing(changes).dumps())
    code, out, _ = run("simulate", tmp_path / "s.toml")
    assert code == 0
    assert [line.strip() for line in out.splitlines() if line.startswith("  ")] == notes
    assert ("–" in out) == ("cluster.workers" in changes)


def test_a_comparison_tells_why_the_measurement_has_no_busiest_link(run: Run, tmp_path: Path) -> None:
    predicted = distsim.simulate(example("synchronous_ring"))
    unseen = predicted.transfers.where(np.zeros(len(predicted.transfers), dtype=bool))
    measured = replace(predicted, transfers=unseen, metadata=predicted.metadata | {"producer": "measured"})
    predicted.save(tmp_path / "p.npz")
    measured.save(tmp_path / "m.npz")
    code, out, _ = run("compare", "--predicted", tmp_path / "p.npz", "--measured", tmp_path / "m.npz")
    assert out.endswith(
        "Next: add --html report.html to this command: it draws both timelines, and the causes of the errors.\n"
    )
    assert code == 0
    assert "  busiest link –: the backend's own all-reduce does not show its transfers; communication.impl" in out
    assert out.count("busiest link –") == 1


def test_a_sweep_over_the_period_tells_what_its_step_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(example("synchronous_ring").replacing({**LOCAL, "steps": 8}).dumps())
    _, out, _ = run("sweep", tmp_path / "s.toml", "--vary", "policy.period=1,4", "--workers", "1")
    assert "step: from one update to the next; policy.period says after how many local steps" in out
    _, out, _ = run("sweep", tmp_path / "s.toml", "--vary", "seed=1,2", "--workers", "1")
    assert "an update comes every 4 local steps (policy.period)" in out


@pytest.mark.parametrize("suffix", [".npz", ".json", ".json.gz"])
def test_a_saved_trace_is_the_simulated_one(run: Run, files: dict[str, Path], tmp_path: Path, suffix: str) -> None:
    code, _, _ = run("simulate", files["backup_server"], "--trace", tmp_path / f"run{suffix}")
    assert code == 0
    assert Trace.load(tmp_path / f"run{suffix}") == distsim.simulate(example("backup_server"))


def test_tables_round_what_they_show(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    """As with 0.1 + 0.2 = 0.30000000000000004; JSON keeps every digit."""
    for name, bandwidth in (("p.npz", "10 Gbit/s"), ("m.npz", "3 Gbit/s")):
        distsim.simulate(example("backup_server").replacing({"cluster.bandwidth": bandwidth})).save(tmp_path / name)
    saved = ("--predicted", tmp_path / "p.npz", "--measured", tmp_path / "m.npz")
    for arguments in (
        ("simulate", files["backup_server"]),
        ("compare", *saved),
        ("sweep", files["backup_server"], "--vary", "compute.cv=0.1,0.7", "--workers", "1"),
        ("validate", "--simgrid", SHIPPED),
    ):
        _, out, _ = run(*arguments)
        assert "." in out
        assert re.findall(r"\d\.\d{6,}", out) == [], arguments[0]
    _, out, _ = run("compare", *saved, "--html", tmp_path / "page.html")
    shown = re.sub(
        r"(?s)<script.*?</script>|<style.*?</style>|<[^>]*>", " ", (tmp_path / "page.html").read_text("utf-8")
    )
    assert "measured total (s)" in shown
    assert re.findall(r"\d\.\d{6,}", shown) == []


def test_saved_traces_are_compared(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    slower = tmp_path / "slower.toml"
    slower.write_text(example("backup_server").replacing({"cluster.bandwidth": "5 Gbit/s"}).dumps())
    for file, trace in ((files["backup_server"], "p.npz"), (slower, "m.json.gz")):
        assert run("simulate", file, "--trace", tmp_path / trace)[0] == 0
    arguments = ("compare", "--predicted", tmp_path / "p.npz", "--measured", tmp_path / "m.json.gz")
    code, out, err = run(*arguments, "--json")
    (found,) = json.loads(out)
    assert code == 0
    assert err == (
        "distsim: warning: the prediction has cluster.bandwidth = '10 Gbit/s', the measurement's scenario '5 Gbit/s'\n"
    )
    assert found.keys() == {"name", "predicted", "measured", "error_pct", "regime"}
    assert sum(found["regime"].values()) == pytest.approx(1.0)
    assert found["predicted"].keys() == found["measured"].keys() == SUMMARY_KEYS
    assert found["error_pct"].keys() == {"step_median", "total", "staleness", "causes", "unmatched"}
    assert found["error_pct"]["causes"].keys() == {"compute", "communication", "waiting"}
    assert sum(found["error_pct"]["causes"].values()) == pytest.approx(
        found["predicted"]["total_seconds"] - found["measured"]["total_seconds"]
    )
    code, out, told = run(*arguments, "--html", tmp_path / "page.html")
    assert (code, told) == (0, err)
    assert "predicted" in out
    assert "measurement's scenario" not in out, "told once"
    assert "measurement&#x27;s scenario" in (tmp_path / "page.html").read_text("utf-8")


def test_saved_traces_of_two_scenarios_are_refused(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(example("backup_server").replacing({"seed": 8}).dumps())
    for file, trace in ((files["backup_server"], "p.npz"), (other, "m.json.gz")):
        assert run("simulate", file, "--trace", tmp_path / trace)[0] == 0
    code, out, err = run("compare", "--predicted", tmp_path / "p.npz", "--measured", tmp_path / "m.json.gz")
    assert (code, out) == (2, "")
    assert "seed of the predicted trace = 7: must equal the measured one's, 8. Cure: " in err


BAD_SCENARIOS = {
    "unknown key": (
        'bandwidth = "10 Gbit/s"',
        'bandwith = "10 Gbit/s"',
        ["bandwith", "not a key of the table [cluster]"],
    ),
    "negative bandwidth": ('"10 Gbit/s"', '"-10 Gbit/s"', ["'-10 Gbit/s'", "must be above 0"]),
    "backups >= workers": ("backups = 1", "backups = 5", ["backups = 5", "must be fewer than the 5 workers"]),
    "missing unit": ('"10 Gbit/s"', '"10"', ["'10'", "has no unit"]),
    "wrong type": ("steps = 50", 'steps = "50"', ["steps = '50'", "whole number"]),
    "not TOML": ("steps = 50", "steps = ", ["is not TOML"]),
    "gradient and model": ("batch = 32", 'batch = 32\nmodel = "cnn"', ["gradient follows from model = 'cnn'"]),
    "latency without network": ('"50 us"', '"fifty us"', ["'fifty us'"]),
}


@pytest.mark.parametrize("case", BAD_SCENARIOS)
@pytest.mark.parametrize("command", ["simulate", "measure", "compare"])
def test_a_bad_scenario_gets_one_message(run: Run, tmp_path: Path, case: str, command: str) -> None:
    old, new, expected = BAD_SCENARIOS[case]
    text = example("backup_server").dumps()
    assert old in text
    (tmp_path / "bad.toml").write_text(text.replace(old, new))
    code, out, err = run(command, tmp_path / "bad.toml", "--json")
    assert (code, out) == (2, "")
    assert "Cure:" in err
    assert "Traceback" not in err
    assert "bad.toml" in err
    for part in expected:
        assert part in err


def test_brackets_in_a_name_are_shown_as_they_are(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(example("synchronous_ring").replacing({"name": "run [/tmp/x] [ring]"}).dumps())
    code, out, _ = run("simulate", tmp_path / "s.toml")
    assert code == 0
    assert "run [/tmp/x] [ring]" in out


def test_a_byte_order_mark_is_no_part_of_a_scenario(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b"\xef\xbb\xbf" + example("synchronous_ring").dumps().encode())
    assert run("simulate", tmp_path / "s.toml", "--json")[0] == 0


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "steps = " + "9" * 5000])
def test_toml_that_python_cannot_take_gets_one_message(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    code, _, err = run("simulate", tmp_path / "s.toml")
    assert code == 2
    assert "Cure:" in err


def test_files_that_are_no_scenarios(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    for name, rule in (
        ("empty.toml", "is empty"),
        ("binary.toml", "is not a text file"),
        ("absent.toml", "No such file"),
        (".", "Is a directory"),
    ):
        code, out, err = run("simulate", tmp_path / name)
        assert (code, out) == (2, "")
        assert rule in err
        assert "Cure:" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("compare",), "nothing to compare"),
        (("compare", "--predicted", "p.npz"), "needs --measured too"),
        (("compare", "s.toml", "--predicted", "p.npz", "--measured", "m.npz"), "exclude each other"),
        (("compare", "--predicted", "p.npz", "--measured", "m.npz"), "cannot be read"),
        (
            ("compare", "--predicted", "p.npz", "--measured", "m.npz", "--calibration", "c"),
            "changes nothing about saved",
        ),
        (("simulate", "s.toml", "--trace", "run.txt"), "must end in .npz"),
        (("calibrate", "--workers", "0,2"), "above 0"),
        (("calibrate", "--busy", "-3"), "whole numbers with commas"),
        (("calibrate", "--sizes", "1 MiB"), "a line needs two points"),
        (("calibrate", "--sizes", "1 MiB,4 s"), "'1 MiB,4 s'"),
        (("calibrate", "--workers", "2", "--batch", "1000"), "more than the 1437 training samples"),
        (("calibrate", "--bandwidth", "1 Gbit/s"), "add --emulate"),
        (("calibrate", "--emulate", "--bandwidth", "0 Gbit/s"), "write '1 Gbit/s'"),
        (("calibrate", "--emulate", "--latency", "fast"), "write a number and one of s, ms, us"),
    ],
)
def test_bad_arguments_get_one_message(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(example("backup_server").dumps())
    code, _, err = run(*arguments)
    assert code == 2
    assert expected in err
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("simulate",), "missing argument 'FILE'. Cure: distsim simulate --help shows how it is called"),
        (("sweep", "s.toml"), "missing option '--vary'. Cure: add --vary KEY=VALUES. "),
        (("nonsense",), "command = 'nonsense': is not a command. Cure: take one of bench, calibrate, compare, "),
        (("simulat", "s.toml"), "command = 'simulat': is not a command. Cure: write simulate"),
        (("simulate", "s.toml", "--jsno"), "option = '--jsno': is not an option of distsim simulate. Cure: write --js"),
        (("simulate", "s.toml", "-q"), "option = '-q': is not an option of distsim simulate. Cure: take one of --cal"),
        (("simulate", "s.toml", "more"), "unexpected extra argument (more). Cure: distsim simulate --help"),
        (("measure", "s.toml", "--deadline", "soon"), "'soon' is not a valid float range. Cure: distsim measure --h"),
    ],
)
def test_wrong_usage_ends_with_2_and_a_cure(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: distsim ")
    assert expected in err


def test_an_option_without_its_value_ends_with_2_and_a_cure(run: Run) -> None:
    code, _, err = run("simulate", "s.toml", "--trace")
    assert code == 2
    assert "'--trace' requires an argument. Cure: " in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_ends_without_a_traceback(files: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "distsim", "simulate", str(files["backup_server"])]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "distsim: No space left on device. Cure: free some space, or write elsewhere\n"


def test_a_file_without_end_is_not_read_to_its_end(run: Run) -> None:
    code, _, err = run("simulate", "/dev/zero")
    assert code == 2
    assert "scenario file = '/dev/zero': cannot be read (it holds more than 1 MB). Cure: " in err


def test_validate_prints_the_contracts_object(run: Run) -> None:
    code, out, _ = run("validate", "--simgrid", SHIPPED, "--json")
    found = json.loads(out)
    assert code == 0
    assert found.keys() == {"algorithms", "slow"}
    assert found["algorithms"]["ring"].keys() == {"cases", "skipped", "max_relative_error"}
    code, out, _ = run("validate", "--simgrid", SHIPPED)
    assert "train_ps" in out


def test_doctor_tells_what_it_found(run: Run) -> None:
    code, out, _ = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)}
    assert code == 0
    assert checks["python"]["ok"]
    assert {"cores", "torch", "gloo", "jupyterlab", "namespaces", "gpu"} <= checks.keys()
    assert all(check["ok"] or check["cure"] for check in checks.values())


def test_doctor_looks_for_both_programs_of_the_emulated_cluster_where_it_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    system, own = tmp_path / "sbin", tmp_path / "bin"
    for program in (system / "tc", own / "other"):
        program.parent.mkdir()
        program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(own))
    monkeypatch.setattr("distsim.doctor.SYSTEM_FOLDERS", (str(system),))
    checks = {check.name: check for check in examine()}
    assert (checks["tc"].ok, checks["tc"].cure) == (True, "")
    assert (checks["ip"].ok, checks["ip"].cure) == (False, "install the package iproute2")


def test_a_failed_run_leaves_the_trace_of_what_was_recorded(
    run: Run, monkeypatch: pytest.MonkeyPatch, files: dict[str, Path], tmp_path: Path
) -> None:
    until_then = distsim.simulate(example("backup_server"))

    def fail(*_arguments: object, **_options: object) -> Trace:
        error = distsim.RunError("rank 1 (worker 1) was ended by SIGKILL")
        error.trace = until_then
        raise error

    monkeypatch.setattr("distsim.cli.measure.run", fail)
    saved = tmp_path / "measured.json"
    code, _, said = run("measure", files["backup_server"], "--trace", saved)
    assert code == 3
    assert said.splitlines()[-1] == f"what was recorded until then: {saved}"
    assert Trace.load(saved) == until_then
    code, _, said = run("measure", files["backup_server"])
    assert (code, said.splitlines()[-1]) == (3, "distsim: rank 1 (worker 1) was ended by SIGKILL")


@pytest.mark.parametrize(("interrupt", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_an_interrupted_run_leaves_the_trace_of_what_was_recorded(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, Path],
    tmp_path: Path,
    interrupt: BaseException,
    code: int,
) -> None:
    until_then = distsim.simulate(example("backup_server"))

    def interrupted(*_arguments: object, **_options: object) -> Trace:
        interrupt.trace = until_then  # type: ignore[attr-defined] # as the launch does
        raise interrupt

    monkeypatch.setattr("distsim.cli.measure.run", interrupted)
    saved = tmp_path / "measured.json"
    found, out, said = run("measure", files["backup_server"], "--trace", saved)
    assert (found, out) == (code, "")
    assert f"what was recorded until then: {saved}" in said
    assert Trace.load(saved) == until_then
    assert run("measure", files["backup_server"])[0] == code


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> MachineCalibration:
    """What `distsim calibrate` finds without measuring: one core, and messages that are no straight line."""
    seconds = {1e4: 1e-4, 1e5: 3e-4, 1e6: 2e-4}
    found = fitted([("point_to_point", None, 2, size, np.full(3, time)) for size, time in seconds.items()], cores=1)
    monkeypatch.setattr("distsim.cli.calibrate.run", lambda _plan, **_options: found)
    return found


def test_calibrate_writes_prints_and_warns(run: Run, machine: MachineCalibration, tmp_path: Path) -> None:
    code, out, err = run("calibrate", "--out", tmp_path / "c.json", "--html", tmp_path / "c.html", "--json")
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "c.json").read_text())
    assert Calibration.load(tmp_path / "c.json").machine == machine
    assert "ranks shared 1 core" in err
    assert "poor fits" in err
    page = (tmp_path / "c.html").read_text("utf-8")
    assert page.count("plotly-graph-div") == 1
    assert "poor fits" in page
    code, out, _ = run("calibrate")
    assert code == 0
    assert "point to point" in out
    assert "\x1b" not in out


def test_a_prediction_far_beyond_its_calibration_warns_in_one_line(
    run: Run, files: dict[str, Path], tmp_path: Path
) -> None:
    samples = [("all_reduce", None, 2, size, np.full(3, 1e-4 + size / 1e9)) for size in (1e4, 1e6)]
    Calibration(machine=fitted(samples, cores=8)).save(tmp_path / "c.json")
    arguments = ("simulate", files["synchronous_ring"], "--calibration", tmp_path / "c.json", "--json")
    code, out, err = run(*arguments)
    assert code == 0
    assert json.loads(out).keys() == SUMMARY_KEYS
    assert err == (
        "distsim: warning: all-reduce, backend: 4.19 MB on 4 workers are far beyond the 1 MB on 2 that was measured; "
        "the prediction is a guess. Cure: calibrate with larger --sizes\n"
    )


def test_help_lists_every_command(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    for command in ("simulate", "measure", "compare", "sweep", "validate", "bench", "doctor", "course", "lab", "grade"):
        assert command in out


def test_the_demo_ends_with_what_to_do_next() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text("utf-8")
    *_, command, course = makefile.partition("\ndemo:")[2].partition("\n\n")[0].splitlines()
    assert "--html out/demo.html" in command  # whose last line names the page to open
    assert "make course opens the course" in course


def test_a_closed_pipe_ends_without_a_traceback(files: dict[str, Path]) -> None:
    command = f"{sys.executable} -m distsim simulate {files['backup_server']} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


# Accuracy and speed


def claims_of(*held: bool) -> Callable[[], list[Claim]]:
    return lambda: [Claim(f"case {number}", 1.0, 1.0 if holds else 1.5, 0.1) for number, holds in enumerate(held)]


TABLES = (Table("first", claims_of(True, True), "The first"), Table("second", claims_of(True), "Digits", PRINTED))
PUBLISHED = {"ddp_benchmark", "ddp_buckets", "deeplab_on_v100", "cifar_with_ddp", "megatron"}


def test_validate_prints_a_key_per_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distsim.accuracy.tables.TABLES", TABLES)
    code, out, err = run("validate", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found.keys() == {"first", "second", "simgrid"} | PUBLISHED
    assert found["first"][0] == {
        "case": "case 0", "expression": 1.0, "simulated": 1.0, "difference": 0.0, "allowed": 0.1, "at_most": False,
        "holds": True,
    }  # fmt: skip
    assert found["second"][0]["printed"] == 1.0
    assert sum(row["cases"] for row in found["simgrid"].values()) == 38
    assert all(row["max_relative_error"] <= 1e-9 for row in found["simgrid"].values())


def test_validate_shows_published_scaling_with_its_misses_and_their_causes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distsim.accuracy.tables.TABLES", TABLES)
    code, out, _ = run("validate")
    assert code == 0
    for text in ("ResNeXt-101", "T(4)", "-2.55 %", "-1.32 %", "10 of 10", "+92 %", "443 s", "-87 %", "hypotheses",
                 "loader processes", "gloo"):  # fmt: skip
        assert text in out
    assert "14 rows hold" in out  # two tables' three, and SimGrid's eleven algorithms


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_row_that_does_not_hold_is_named_and_ends_with_1(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    wrong = (*TABLES, Table("third", claims_of(True, False, False), "The third"))
    monkeypatch.setattr("distsim.accuracy.tables.TABLES", wrong)
    code, out, err = run("validate", *options)
    assert code == 1
    assert err.splitlines()[0] == "distsim: 2 rows do not hold:"
    assert "third: case 1: 1.5 beside 1" in err
    assert "case 0" not in err
    if options:
        assert [row["holds"] for row in json.loads(out)["third"]] == [True, False, False]
    else:
        assert out.count(" NO") == 2


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_results_of_ones_own_that_differ_are_named(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    document = json.loads(SHIPPED.read_text())
    document["cases"] = [case for case in document["cases"] if case["algorithm"] in ("rhd", "tree")]
    next(case for case in document["cases"] if case["algorithm"] == "tree")["makespan_s"] *= 1.001
    (tmp_path / "own.json").write_text(json.dumps(document))
    code, out, err = run("validate", "--simgrid", tmp_path / "own.json", *options)
    assert code == 1
    assert "one row does not hold" in err
    assert "simgrid: tree: 1.0e-03" in err
    assert "rhd" not in err
    if options:
        assert json.loads(out).keys() == {"algorithms", "slow"}
        assert json.loads(out)["algorithms"]["tree"]["max_relative_error"] == pytest.approx(1e-3, rel=0.01)


def test_bench_prints_what_was_asked_for(run: Run) -> None:
    code, out, _ = run("bench", "--quick", "--only", "one, 64 RANKS", "--only", "one, 256 ranks", "--json")
    rows = json.loads(out)
    assert code == 0
    assert [row["figure"] for row in rows] == ["one, 64 ranks", "one, 256 ranks"]
    for row in rows:
        assert row["unit"] == "seconds"
        assert row["value"] == pytest.approx(row["measured"] * row["floor"] / 1.4e6)
        assert row["met"] is (row["value"] <= row["bound"])
        assert row["repeats"] > 1
    assert [row["simgrid_seconds"] for row in rows] == [0.0115, 0.19]


def test_bench_tells_a_figure_that_has_become_slow(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same work forty times over, which no machine does in a fortieth of the time."""
    swift = one_ring(64)()
    slow = Duration("Rings", "slow", 0.25e-3, lambda: lambda: [swift() for _ in range(40)])
    easy = Duration("Rings", "easy", 10.0, lambda: swift)
    monkeypatch.setattr("distsim.speed.catalogue.FIGURES", (slow, easy))
    code, out, _ = run("bench", "--quick")
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert code == 0
    assert "MISSED" in rows["slow"]
    assert "MISSED" not in rows["easy"]
    assert "met" in rows["easy"]
    assert "1 of 2 bounds met." in out


def test_bench_knows_its_figures(run: Run) -> None:
    code, _, err = run("bench", "--only", "warp drive")
    assert code == 2
    assert "--only = 'warp drive'" in err
    assert "Cure:" in err
