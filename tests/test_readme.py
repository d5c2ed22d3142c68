"""What the README tells people to type works as written."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from distsim import figures
from distsim.examples import example
from distsim.scenario import Scenario

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8")
OF_LABS = ("lab", "grade")


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language ("" for those without)."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [body for name, body in found if name == language]


def commands(program: str) -> list[list[str]]:
    return [shlex.split(line) for block in blocks("") for line in block.splitlines() if line.startswith(f"{program} ")]


def test_scenarios_are_valid() -> None:
    (text,) = blocks("toml")
    assert Scenario.loads(text).cluster.workers == 5


def run(code: str, folder: Path) -> str:
    """What it prints, anywhere but here."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_python_runs(tmp_path: Path) -> None:
    for code in blocks("python"):
        if "measure" not in code:
            run(code, tmp_path)
    assert (tmp_path / "predicted.json.gz").exists()


@pytest.mark.real
@pytest.mark.more
def test_python_that_measures_runs(tmp_path: Path) -> None:
    (code,) = [code for code in blocks("python") if "measure" in code]
    *accuracies, losses = run(code, tmp_path).splitlines()
    assert [line.split(":")[0] for line in accuracies] == ["simulated", "measured"]
    logged, replayed = re.findall(r"\d\.\d+", losses)
    assert float(logged) == pytest.approx(float(replayed), rel=1e-5)


def test_every_figure_is_named() -> None:
    named = set(re.findall(r"`(\w+)`", TEXT))
    assert set(figures.__all__) - {"Captioned"} <= named


def test_make_targets_exist() -> None:
    for words in commands("make"):
        done = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(300)
def test_commands_run_in_their_order(tmp_path: Path) -> None:
    scenario = example("backup_server").replacing({"steps": 10, "compute.mean": "10 ms", "workload.gradient": "64 KiB"})
    (tmp_path / "run.toml").write_text(scenario.dumps())
    code = 'import distsim; distsim.simulate(distsim.Scenario.load("run.toml")).save("predicted.json.gz")'
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    # `course` serves until Ctrl-C; tests/test_course_command.py starts and ends it.
    ours = [words for words in commands("distsim") if words[1] not in ("course", *OF_LABS)]
    assert len(ours) >= 5
    for words in ours:
        done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert (tmp_path / "report.html").exists()


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(300)
def test_commands_of_labs_run_in_their_order(tmp_path: Path) -> None:
    """On the small lab of the tests, under the number and name that the README takes as its example."""
    lab = tmp_path / "labs" / "03_ring"
    shutil.copytree(ROOT / "tests" / "grading" / "labs" / "90_sum", lab)
    (tmp_path / "submissions" / "ada").mkdir(parents=True)
    shutil.copyfile(lab / "solution.py", tmp_path / "submissions" / "ada" / "tasks.py")
    ours = [words for words in commands("distsim") if words[1] in OF_LABS]
    assert len(ours) >= 5
    for words in ours:
        done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        told = f"runs {words[-1]}/tasks.py\n" if words[1:3] == ["lab", "run"] else ""
        assert (done.returncode, done.stderr) == (0, told), words
        if words[1:3] == ["lab", "start"]:
            shutil.copyfile(lab / "solution.py", tmp_path / words[4] / "03_ring" / "tasks.py")
    assert "\nada,3,2,5,5," in (tmp_path / "grades_03_ring" / "gradebook.csv").read_text()


def test_folders_and_files_of_the_tree_exist() -> None:
    tree = next(block for block in blocks("") if block.startswith("course/"))
    folder = ROOT
    for line in tree.splitlines():
        name = line.split()[0]
        path = folder / name if line.startswith(" ") else ROOT / name
        if not line.startswith(" "):
            folder = path
        assert path.exists(), line


def test_every_module_of_the_package_is_in_the_tree_or_named_with_another() -> None:
    tree = next(block for block in blocks("") if block.startswith("course/"))
    small = {"description", "validation", "errors", "files", "progress", "random_streams", "doctor"}
    for path in sorted((ROOT / "distsim").iterdir()):
        if path.name.startswith("__") or path.suffix == ".typed" or path.stem in small:
            continue
        assert path.name in tree, f"{path.name} has no line in the README's tree"
