"""Every page works as written: its links, its blocks of code, its commands, and the paths that it names."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from distsim.cli.main import distsim
from distsim.examples import example
from distsim.profile import Profile
from distsim.scenario import Scenario
from tests.pages import BESIDE, PAGES, ROOT, Page, run_command
from tests.test_profile import profile_of

LANGUAGES = {"", "sh", "toml", "python", "dockerfile"}
PROGRAMS = {
    "make",
    "distsim",
    "python",
    "python3",
    "source",
    "pip",
    "cd",
    "cp",
    "git",
    "jupyter",
    "sbatch",
    "pre-commit",
    "dask",
}
LONG_PASSAGE = 120  # characters; shorter ones, such as the head of a table, may stand twice
OF_REAL_RUNS = ("REAL_RUNS", "GPUS_AND_MACHINES", "FIGURES", "SPEED", "ACCURACY")
NODES = re.compile(r"^node(\d)\$ (distsim measure .+)$", re.MULTILINE)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
PYTHON = [(page, code) for page in PAGES for code in page.blocks("python")]


def run_python(code: str, folder: Path) -> str:
    """What the code prints, with warnings as errors, in a folder without the repository."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@every_page
def test_a_page_says_nothing_twice(page: Page) -> None:
    """A passage that an edit pasted once more shows as a paragraph, an item or a heading that stands twice."""
    passages = [passage for passage in re.split(r"\n\s*\n|\n(?=[*#] )", page.prose) if len(passage) > LONG_PASSAGE]
    assert len(passages) == len(set(passages)), [one for one in set(passages) if passages.count(one) > 1]


@every_page
def test_an_empty_line_ends_each_table(page: Page) -> None:
    """Without it, the paragraph behind is drawn as rows of the table."""
    assert re.findall(r"^ *\|.*\|\n *[^|\s].*", page.prose, re.MULTILINE) == []


@every_page
def test_links_lead_to_a_file_and_a_heading(page: Page) -> None:
    for link in page.links:
        file, _, anchor = link.partition("#")
        target = (page.path.parent / file).resolve() if file else page.path
        assert target.exists(), link
        if anchor:
            assert anchor in Page(target.relative_to(ROOT).as_posix()).anchors, link


@every_page
def test_paths_that_are_named_exist(page: Page) -> None:
    for path in re.findall(r"`((?:distsim|tests|course|labs|\.github|\.ci)/[\w./-]*)`", page.prose):
        if "NN_" not in path:
            assert (ROOT / path).exists(), path


@every_page
def test_every_block_is_of_a_kind_that_is_tested(page: Page, tmp_path: Path) -> None:
    assert {language for language, _ in page.all_blocks} <= LANGUAGES
    assert {words[0] for words in page.lines} - {words[0] for words in page.lines if "/" in words[0]} <= PROGRAMS
    profile_of().save(tmp_path / "profile.json")
    for text in page.blocks("toml"):
        assert Scenario.loads(text, folder=tmp_path)


@every_page
def test_make_targets_exist(page: Page) -> None:
    inline = [command.split() for command in re.findall(r"`(make [\w-]+)`", page.prose)]
    for words in (*page.commands("make"), *inline):
        done = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@every_page
def test_commands_and_their_options_exist(page: Page) -> None:
    inline = [command.split() for command in re.findall(r"`(distsim [a-z][^`]*)`", page.prose)]
    for _, *words in (*page.commands("distsim"), *inline):
        command: click.Command | None = distsim
        while isinstance(command, click.Group) and words:
            command = command.get_command(click.Context(command), words.pop(0))
        assert command, words
        known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        assert {word for word in words if re.match(r"-+[a-z]", word)} <= known, words


@every_page
def test_python_modules_and_tools_exist(page: Page) -> None:
    for words in (*page.commands("python"), *page.commands("python3")):
        assert words[1] == "-m"
        assert find_spec(words[2])
        for path in words[3:]:
            assert not path.startswith("tests/") or (ROOT / path).exists()
    for program in {"pip", "jupyter", "pre-commit"} & {words[0] for words in page.lines}:
        assert program in ("pip", "pre-commit") or find_spec(f"{program}lab")


@pytest.mark.parametrize(("page", "code"), [one for one in PYTHON if "measure" not in one[1]])
def test_python_runs(page: Page, code: str, tmp_path: Path) -> None:  # noqa: ARG001  the page names the test
    run_python(code, tmp_path)
    for file in re.findall(r"\.save\(\"([^\"]+)\"\)", code):
        assert (tmp_path / file).exists()


@pytest.mark.real
@pytest.mark.more
def test_python_that_measures_runs(tmp_path: Path) -> None:
    (code,) = [code for _, code in PYTHON if "measure" in code]
    *accuracies, losses = run_python(code, tmp_path).splitlines()
    assert [line.split(":")[0] for line in accuracies] == ["simulated", "measured"]
    logged, replayed = re.findall(r"\d\.\d+", losses)
    assert float(logged) == pytest.approx(float(replayed), rel=1e-5)


def test_the_installation_without_make_is_that_of_make() -> None:
    (installed,) = re.findall(r"pip install .*--constraint (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    pages = [page for page in PAGES if "pip install --c" in page.text]
    assert pages
    for page in pages:
        assert f"pip install --constraint {installed}" in page.text


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A folder with `run.toml`, as the pages assume it; small, so that real runs take seconds."""
    scenario = example("backup_server").replacing({"steps": 5, "compute.mean": "10 ms", "workload.gradient": "64 KiB"})
    (tmp_path / "run.toml").write_text(scenario.dumps())
    return tmp_path


@pytest.mark.real
@pytest.mark.more
@pytest.mark.iproute2
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [page for page in BESIDE if page.path.stem in OF_REAL_RUNS], ids=lambda page: page.name
)
def test_commands_run_in_their_order(page: Page, prepared: Path) -> None:
    if page.path.stem == "GPUS_AND_MACHINES":  # Slurm's part of it
        shutil.copyfile(prepared / "run.toml", prepared / "measured.toml")
        assert run_command(["distsim", "measure", "run.toml", "--trace", "measured.npz"], prepared).returncode == 0
    # `course` serves until Ctrl-C; tests/test_course_command.py starts and ends it. tests/test_sweep_dask.py has a
    # cluster for `--scheduler`.
    for words in [words for words in page.commands("distsim") if words[1] != "course" and "--scheduler" not in words]:
        done = run_command(words, prepared)
        told = all(line.startswith("distsim: warning: ") for line in done.stderr.splitlines())
        assert (done.returncode, told) == (0, True), (words, done.stderr)


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(600)
def test_the_way_of_your_own_model_works_as_written(tmp_path: Path) -> None:
    page = Page("course/YOUR_MODEL.md")
    (model, dimensions), (scenario,) = page.blocks("python"), page.blocks("toml")
    subprocess.run([sys.executable, "-c", dimensions], cwd=tmp_path, check=True)
    assert Profile.load(tmp_path / "gpt.json").gradient_bytes == pytest.approx(2 * 13e9, rel=0.02)
    (tmp_path / "my_model.py").write_text(model, "utf-8")
    (tmp_path / "run.toml").write_text(scenario, "utf-8")
    (tmp_path / "run4.toml").write_text(scenario.replace("workers = 2", "workers = 4"), "utf-8")
    for words in page.commands("distsim"):
        done = run_command(words, tmp_path)
        told = all(line.startswith("distsim: warning: ") for line in done.stderr.splitlines())
        assert (done.returncode, told) == (0, True), (words, done.stderr)
        if words[1] == "profile":
            found = Profile.load(tmp_path / "profile.json")
            assert (len(found.layers), found.batch) == (6, 64)


@pytest.mark.real
@pytest.mark.more
def test_the_commands_for_two_machines_run_on_one(prepared: Path) -> None:
    (block,) = [body for body in Page("course/GPUS_AND_MACHINES.md").blocks("") if NODES.search(body)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lines = [line.replace("node0:29500", f"127.0.0.1:{port}") for _, line in NODES.findall(block)]
    assert len(lines) == 2
    started = [
        subprocess.Popen([sys.executable, "-m", *line.split()], cwd=prepared, stderr=subprocess.PIPE, text=True)
        for line in lines
    ]
    ended = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], ended
    assert (prepared / "m.npz").exists()


@pytest.mark.real
@pytest.mark.more
@pytest.mark.timeout(300)
def test_commands_for_students_run_in_their_order(tmp_path: Path) -> None:
    """With the solution in place of what a student writes."""
    solution, folder = ROOT / "labs" / "01_processes" / "solution.py", tmp_path
    for words in [words for words in Page("labs/README.md").lines if words[0] in ("cd", "distsim")]:
        if words[0] == "cd":
            folder = folder / words[1]
            continue
        done = run_command(words, folder)
        assert done.returncode == 0, (words, done.stderr)
        if words[1:3] == ["lab", "start"]:
            shutil.copyfile(solution, tmp_path / words[4] / "01_processes" / "tasks.py")
    assert folder != tmp_path
    assert re.search(r"total +│ +15 │ +15 │", done.stdout)


def tree() -> dict[str, str]:
    """Path and caption of each line of the file tree; folders end in a slash."""
    (block,) = Page("course/FILES.md").blocks("")
    found: dict[str, str] = {}
    folders: list[str] = []
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name, caption = line.split(maxsplit=1)
        folders = [*folders[:depth], name]
        found["".join(folders)] = caption
    return found


def test_every_line_of_the_tree_is_there_and_has_a_caption() -> None:
    for path, caption in tree().items():
        assert (ROOT / path).is_dir() == path.endswith("/"), path
        assert (ROOT / path).exists(), path
        assert len(caption) > 10, path


def test_the_tree_has_every_folder_of_the_package_and_every_module_of_its_top() -> None:
    package = ROOT / "distsim"
    folders = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in package.rglob("*.py")}
    modules = {f"distsim/{path.name}" for path in package.glob("*.py") if not path.name.startswith("__")}
    within = {path for path in tree() if path.startswith("distsim/")}
    assert folders | modules <= within | {"distsim/examples/"}


def test_the_tree_is_in_the_order_of_imports() -> None:
    """A line of the package stands below all lines that it may import from: the layers of .importlinter, from below."""
    text = (ROOT / ".importlinter").read_text("utf-8")
    layers, *_ = re.findall(r"^layers =\n((?:    .+\n)+)", text, re.MULTILINE)
    levels = [re.findall(r"distsim\.(\w+)", line) for line in layers.splitlines()]
    height = {name: -place for place, level in enumerate(levels) for name in level}
    top = [
        path.removeprefix("distsim/").removesuffix("/").removesuffix(".py")
        for path in tree()
        if re.fullmatch(r"distsim/[\w.]+/?", path)
    ]
    heights = [height[name] for name in top]
    assert heights == sorted(heights)
