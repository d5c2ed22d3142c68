"""`distsim figure`: every kind is drawn from files, and what is wrong is told in one sentence."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from distsim import figures
from distsim.cli.main import distsim
from distsim.course.site.extension import TABLE
from distsim.errors import InputError
from distsim.examples import example
from distsim.figures.catalogue import KINDS, markdown
from distsim.simulation import simulate
from distsim.sweep import sweep
from tests.test_profile import profile_of

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with traces, a scenario and the table of a sweep."""
    folder = tmp_path_factory.mktemp("files")
    ring = example("synchronous_ring").replacing({"steps": 4})
    simulate(ring).save(folder / "ring.npz")
    simulate(ring.replacing({"cluster.workers": 1})).save(folder / "one.npz")
    policies: dict[str, dict[str, Any]] = {
        "pipeline": {"policy": {"kind": "pipeline", "micro_batches": 4}, "workload.activation": "1 MiB"},
        "overlap": {"policy": {"kind": "ddp", "bucket": "1 MiB"}},
    }
    for name, changes in policies.items():
        simulate(ring.replacing(changes)).save(folder / f"{name}.npz")
    (folder / "run.toml").write_text(example("backup_server").replacing({"steps": 4}).dumps())
    rows = sweep(ring, {"cluster.workers": [2, 3], "steps": [1, 2]})
    pd.DataFrame(rows).to_csv(folder / "sweep.csv", index=False)
    profile_of().save(folder / "profile.json")
    return folder


def command(*arguments: object) -> Result:
    """The command's result; an error of ours is in `exception`."""
    return CliRunner().invoke(distsim, ["figure", *map(str, arguments)])


def names(kind: str) -> list[str]:
    """The files that a kind is drawn of here."""
    of_kind = {
        "pipeline": ["pipeline.npz"], "overlap": ["overlap.npz"], "scaling": ["one.npz", "ring.npz"],
        "sequence": ["run.toml"], "staleness": ["run.toml", "ring.npz"],
    }  # fmt: skip
    others = {"pair": ["ring.npz", "ring.npz"], "sweep": ["sweep.csv"], "profile": ["profile.json"]}
    return of_kind.get(kind) or others.get(KINDS[kind].files, ["ring.npz"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_and_told(kind: str, files: Path, tmp_path: Path) -> None:
    found = command(kind, *(files / name for name in names(kind)), "-o", tmp_path / "figure.html")
    assert found.exit_code == 0, found.exception
    assert found.output.strip().endswith(".")
    assert found.output.strip() in (tmp_path / "figure.html").read_text("utf-8").replace("&#x27;", "'")


def test_help_lists_every_kind_with_what_it_shows() -> None:
    listed = " ".join(command("--help").output.split())
    assert all(f"{kind} {entry.shows} (" in listed for kind, entry in KINDS.items())


def test_the_table_of_figures_is_printed_and_the_page_has_a_place_for_it() -> None:
    printed = subprocess.run([sys.executable, "-m", "distsim.figures"], capture_output=True, text=True, check=True)
    assert printed.stdout == f"{markdown()}\n"
    assert set(figures.__all__) - {"Animation", "Captioned"} <= set(re.findall(r"`(\w+)`", printed.stdout))
    assert (ROOT / "course" / "FIGURES.md").read_text("utf-8").count(TABLE) == 1


def test_a_part_of_the_time_and_a_step_can_be_drawn(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure.html"
    assert "Drawn: 20 ms to 90 ms." in command(
        "timeline", files / "ring.npz", "-o", out, "--start", "20 ms", "--end", "90 ms"
    ).output  # fmt: skip
    first, second = (command("sequence", files / "run.toml", "-o", out, "--step", step).output for step in (0, 1))
    assert first != second


def test_json_has_the_sentence_and_the_table(files: Path, tmp_path: Path) -> None:
    found = command("heat-map", files / "sweep.csv", "-o", tmp_path / "map.html", "--metric", "total_seconds", "--json")
    told = json.loads(found.output)
    assert set(told) == {"kind", "file", "summary", "table"}
    assert len(told["table"]) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["timelin", "ring.npz"], "is not a kind of figure"),
        (["timeline", "none.npz"], "cannot be read"),
        (["comparison", "ring.npz"], "takes 2 FILEs"),
        (["traffic", "ring.npz", "ring.npz"], "takes one FILE"),
        (["traffic", "ring.npz", "--step", "1"], "is not for a figure of kind traffic"),
        (["timeline", "ring.npz", "--start", "soon"], "soon"),
        (["heat-map", "ring.npz"], "must be the .csv of a sweep"),
        (["heat-map", "none.csv"], "cannot be read"),
        (["profile", "ring.npz"], "is not a profile that distsim wrote"),
        (["heat-map", "sweep.csv", "--metric", "speed"], "is not a metric of a sweep"),
        (["scaling", "ring.npz"], "must have a run of one worker"),
        (["overlap", "ring.npz"], 'draw a run of policy.kind = "ddp"'),
        (["pipeline", "ring.npz"], 'draw a run of policy.kind = "pipeline"'),
        (["pipeline", "overlap.npz"], 'draw a run of policy.kind = "pipeline"'),
        (["overlap", "run.toml"], 'draw a run of policy.kind = "ddp"'),
    ],
)
def test_bad_input_ends_with_2_and_leaves_no_file(arguments: list[str], told: str, files: Path, tmp_path: Path) -> None:
    placed = [files / name if "." in name else name for name in arguments]
    found = command(*placed, "-o", tmp_path / "figure.html")
    assert isinstance(found.exception, InputError)
    assert found.exception.exit_code == 2
    assert told in str(found.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["timeline", "ring.npz", "--end", "0 s"], "--end = '0 s': the window must end after it starts. "
         "Cure: take times between 0 s and "),
        (["timeline", "ring.npz", "--start", "-1 s"], "--start = '-1 s': the window must not start before the run"),
        (["timeline", "ring.npz", "--start", "1 h"], "--start = '1 h': the window must end"),
        (["critical-path", "ring.npz", "--start", "20 ms", "--end", "10 ms"], "--start, --end = ['20 ms', '10 ms']: "),
        (["sequence", "run.toml", "--step", "99"], "--step = 99: must be among the run's steps, 0 to 3"),
        (["pipeline", "pipeline.npz", "--step", "99"], "--step = 99: must be one of the run's, 0 to 3"),
        (["overlap", "overlap.npz", "--step", "99"], "--step = 99: must be one with a backward, of 0 to 3"),
        (["pipeline", "ring.npz"], "FILE: policy.kind = 'synchronous': has no micro-batches"),
        (["stragglers", "flexrr.toml"], "FILE: policy = 'flexrr': must be of a policy whose workers do their own"),
        (["heat-map", "sweep.csv", "--metric", "speed"], "--metric = 'speed': is not a metric of a sweep"),
        (["heat-map", "three.csv"], "FILE: varied = 'cluster.workers, steps, seed': must be two keys"),
        (["heat-map", "twice.csv"], "FILE = 'cluster.workers = 2 and steps = 1': stands in more than one row"),
        (["scaling", "ring.npz"], "synchronous, ring, simulated: workers = [4]: must have a run of one worker"),
    ],
)  # fmt: skip
def test_errors_name_options_and_files_of_the_command(
    arguments: list[str], told: str, files: Path, tmp_path: Path
) -> None:
    flexrr = {"policy": {"kind": "flexrr"}, "steps": 4}
    (files / "flexrr.toml").write_text(example("backup_server").replacing(flexrr).dumps())
    three = pd.read_csv(files / "sweep.csv")
    pd.concat([three.assign(seed=1), three.assign(seed=2)])[
        ["cluster.workers", "steps", "seed", "step_seconds_median"]
    ].to_csv(files / "three.csv", index=False)
    pd.concat([three, three[:1]]).to_csv(files / "twice.csv", index=False)
    placed = [files / name if "." in name else name for name in arguments]
    found = command(*placed, "-o", tmp_path / "figure.html")
    assert isinstance(found.exception, InputError)
    assert str(found.exception).startswith(told)
    assert not re.search(r"\w\(|trace\b", str(found.exception)), "no word of Python"


def test_a_wrong_name_of_the_picture_is_that_of_the_option(files: Path, tmp_path: Path) -> None:
    found = command("timeline", files / "ring.npz", "-o", tmp_path / "figure.gif")
    assert str(found.exception).startswith("--out = ")


def test_a_name_that_ends_otherwise_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    found = command("timeline", tmp_path / "none.npz", "-o", tmp_path / "figure.gif")
    assert "must end in" in str(found.exception)


@pytest.mark.chromium
@pytest.mark.more
def test_make_pictures_makes_the_pictures_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the target's commands, but with a simulated run in place of the real one."""
    target = (ROOT / "Makefile").read_text("utf-8").partition("\npictures:")[2].partition("\n\n")[0]
    lines = target.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line.partition("distsim ")[2]) for line in lines if "$(BIN)/distsim " in line]
    (tmp_path / "distsim").mkdir()
    (tmp_path / "distsim" / "examples").symlink_to(ROOT / "distsim" / "examples")
    (tmp_path / "out").mkdir()
    (tmp_path / "course" / "pictures").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for words in commands:
        found = CliRunner().invoke(distsim, ["simulate" if word == "measure" else word for word in words])
        assert found.exit_code == 0, (words, found.exception)
    modules = [shlex.split(line.partition("python ")[2]) for line in lines if "$(BIN)/python " in line]
    package = {**os.environ, "PYTHONPATH": str(ROOT)}  # else tmp_path's own folder "distsim" would be imported
    for words in modules:
        subprocess.run([sys.executable, *words], check=True, env=package)
    made = {f"course/pictures/{path.name}" for path in (tmp_path / "course" / "pictures").iterdir()}
    pages = (ROOT / "README.md", ROOT / "course" / "FIGURES.md")
    links = [re.findall(r"!\[[^]]*\]\(.*?(pictures/[^)]*)\)", page.read_text("utf-8")) for page in pages]
    shown = {f"course/{link}" for found in links for link in found}
    assert made == shown
    assert len(shown) == 5
    for name in shown:
        assert (ROOT / name).stat().st_size < 150_000, name
        assert (tmp_path / name).stat().st_size < 150_000, name


def test_traces_of_two_scenarios_are_no_prediction_and_measurement(files: Path, tmp_path: Path) -> None:
    for kind in ("comparison", "steps"):
        found = command(kind, files / "ring.npz", files / "overlap.npz", "-o", tmp_path / "figure.html")
        assert isinstance(found.exception, InputError)
        assert "must equal the measured one's" in str(found.exception)
        assert not (tmp_path / "figure.html").exists()
