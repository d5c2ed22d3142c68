"""The command line: JSON as the contract says, messages without tracebacks, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import distsim
from distsim.cli.main import main
from distsim.examples import NAMES, example
from distsim.trace import Trace

Run = Callable[..., tuple[int, str, str]]
SUMMARY_KEYS = {
    "step_seconds", "total_seconds", "updates", "dropped_gradients", "mean_staleness", "idle_share",
    "exposed_communication_share", "bytes_per_link_max",
}  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def run_main(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["distsim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run_main


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The example scenarios as files."""
    paths = {name: tmp_path / f"{name}.toml" for name in NAMES}
    for name, path in paths.items():
        path.write_text(example(name).dumps())
    return paths


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


@pytest.mark.parametrize("suffix", [".npz", ".json", ".json.gz"])
def test_a_saved_trace_is_the_simulated_one(run: Run, files: dict[str, Path], tmp_path: Path, suffix: str) -> None:
    code, _, _ = run("simulate", files["backup_server"], "--trace", tmp_path / f"run{suffix}")
    assert code == 0
    assert Trace.load(tmp_path / f"run{suffix}") == distsim.simulate(example("backup_server"))


def test_saved_traces_are_compared(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    slower = tmp_path / "slower.toml"
    slower.write_text(example("backup_server").replacing({"compute.mean": "55 ms"}).dumps())
    for file, trace in ((files["backup_server"], "p.npz"), (slower, "m.json.gz")):
        assert run("simulate", file, "--trace", tmp_path / trace)[0] == 0
    arguments = ("compare", "--predicted", tmp_path / "p.npz", "--measured", tmp_path / "m.json.gz")
    code, out, _ = run(*arguments, "--json")
    (found,) = json.loads(out)
    assert code == 0
    assert found.keys() == {"name", "predicted", "measured", "error_pct"}
    assert found["predicted"].keys() == found["measured"].keys() == SUMMARY_KEYS
    assert found["error_pct"].keys() == {"step_median", "total", "staleness", "causes", "unmatched"}
    assert found["error_pct"]["causes"].keys() == {"compute", "communication", "waiting"}
    assert sum(found["error_pct"]["causes"].values()) == pytest.approx(
        found["predicted"]["total_seconds"] - found["measured"]["total_seconds"]
    )
    code, out, _ = run(*arguments, "--html", tmp_path / "page.html")
    assert code == 0
    assert "predicted" in out
    assert "<html" in (tmp_path / "page.html").read_text("utf-8")


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
        (("simulate", "s.toml", "--calibration", "c.json"), "cannot be read"),
        (("simulate", "s.toml", "--trace", "run.txt"), "must end in .npz"),
        (("simulate", "s.toml", "--trace", "absent/run.npz"), "cannot be written"),
        (("measure", "s.toml", "--trace", "absent/run.npz"), "cannot be written"),
        (("compare", "s.toml", "--html", "absent/page.html"), "cannot be written"),
        (("validate", "--simgrid", "absent.json"), "cannot be read"),
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


@pytest.mark.parametrize("arguments", [("simulate",), ("nonsense",), ("simulate", "s.toml", "--jsno")])
def test_wrong_usage_ends_with_2(run: Run, arguments: tuple[str, ...]) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert "Usage:" in err or "usage" in err.lower()


def test_validate_prints_the_contracts_object(run: Run) -> None:
    cases = Path(__file__).parent / "reference" / "simgrid_cases.json"
    code, out, _ = run("validate", "--simgrid", cases, "--json")
    found = json.loads(out)
    assert code == 0
    assert found.keys() == {"algorithms"}
    assert found["algorithms"]["ring"].keys() == {"cases", "skipped", "max_relative_error"}
    code, out, _ = run("validate", "--simgrid", cases)
    assert "train_ps" in out


def test_doctor_tells_what_it_found(run: Run) -> None:
    code, out, _ = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)}
    assert code == 0
    assert checks["python"]["ok"]
    assert {"cores", "torch", "gloo", "jupyterlab", "namespaces", "gpu"} <= checks.keys()
    assert all(check["ok"] or check["cure"] for check in checks.values())


def test_help_lists_every_command(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    for command in ("simulate", "measure", "compare", "validate", "doctor"):
        assert command in out


def test_a_closed_pipe_ends_without_a_traceback(files: dict[str, Path]) -> None:
    command = f"{sys.executable} -m distsim simulate {files['backup_server']} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
