"""The wheel, installed outside the repository: whole with torch, and useful without torch."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from distsim import material
from distsim.course.record import FILE, Record
from distsim.examples import example
from distsim.grading.lab import all_labs
from distsim.grading.release import leaks
from tests.installed import Environment, built, shelve, variables
from tests.pages import ROOT
from tests.test_course_command import TOKEN, asked, free_port, read_until, wait_for

MOST_SECONDS, MOST_MEGABYTES = 60.0, 400.0
CHAPTER = "course/00_tour.ipynb"

pytestmark = [pytest.mark.more, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return built(tmp_path_factory.mktemp("dist"))


def test_twine_finds_no_fault(archives: tuple[Path, Path]) -> None:
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_has_every_file_of_the_package_and_the_material(archives: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = archives
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    listed = subprocess.run(["git", "ls-files", "distsim"], cwd=ROOT, capture_output=True, text=True, check=True)
    package = {name for name in listed.stdout.split() if (ROOT / name).exists()}
    shipped = {f"distsim/{material.SHIPPED}/{file.as_posix()}" for file in material.files(ROOT)}
    assert len(package) > 300
    assert len(shipped) > 80
    assert {name for name in found if name.startswith("distsim/")} == package | shipped
    assert leaks(all_labs(ROOT / "labs"), tmp_path / "distsim" / material.SHIPPED / "labs") == []
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"setup.py", "Makefile", "labs/03_ring/solution.py", "tests/test_wheel.py", "constraints.txt"} <= names


@pytest.fixture(scope="module")
def small(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel and what it requires, without an extra."""
    folder = tmp_path_factory.mktemp("small")
    shelve(archives[0], folder / "shelf")
    for attempt in range(2):
        environment = Environment.made(folder / f"environment{attempt}")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment.install("distsim-course", shelf=folder / "shelf")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime  # other processes do not count
        print(f"installed in {seconds:.1f} s of computing, {environment.megabytes():.0f} MB")
        if seconds < MOST_SECONDS:
            return environment
    pytest.fail(f"the installation takes {seconds:.0f} s")


def test_without_torch_it_is_small(small: Environment) -> None:
    assert small.megabytes() < MOST_MEGABYTES
    missing = "No module named 'torch'"
    done = subprocess.run([small.program("python"), "-c", "import torch"], capture_output=True, text=True, check=False)
    assert missing in done.stderr


def test_without_torch_it_simulates_draws_and_explores(small: Environment, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(example("backup_server").dumps())
    small.run("simulate", "run.toml", "--trace", "run.npz", folder=tmp_path)
    small.run("figure", "timeline", "run.npz", "-o", "timeline.html", folder=tmp_path)
    assert "plotly" in (tmp_path / "timeline.html").read_text("utf-8")
    small.run("sweep", "run.toml", "--vary", "policy.backups=0:1", "--out", "sweep.csv", folder=tmp_path)
    small.run("figure", "heat-map", "sweep.csv", "-o", "heat.html", folder=tmp_path)
    small.run("doctor", folder=tmp_path)
    assert "03_ring" in small.run("lab", "list", folder=tmp_path)
    code = (
        "import json, distsim; from distsim.explorers.ring_or_server import explorer; frame = explorer(); "
        "panel = frame.real_run; print(json.dumps([distsim.__file__, panel.button.disabled, panel.why.value]))"
    )
    file, disabled, why = json.loads(small.run("-c", code, folder=tmp_path, name="python"))
    assert Path(file).is_relative_to(small.folder)
    assert disabled
    assert "a real run needs torch" in why


@pytest.mark.parametrize(
    "command",
    ["measure run.toml", "compare run.toml", "calibrate", "profile my_model.py:build", "validate --machine",
     "lab run 03", "course", "grade 03 --submission mine", "lab start 03 mine", "lab release out"],
)  # fmt: skip
def test_without_torch_a_command_says_which_extra_it_needs(small: Environment, tmp_path: Path, command: str) -> None:
    (tmp_path / "run.toml").write_text(example("synchronous_ring").dumps())
    shutil.copytree(ROOT / "labs" / "03_ring", tmp_path / "mine")
    printed = small.run(*command.split(), folder=tmp_path, code=2)
    extra = "course" if command.startswith(("course", "lab start", "lab release")) else "labs"
    cure = re.escape(f'is not installed. Cure: pip install "distsim-course[{extra}]"')
    last = printed.splitlines()[-1]
    assert re.fullmatch(rf"distsim: .+ needs \w+, which {cure}", last), printed


@pytest.fixture(scope="module")
def full(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel alone, which finds all other packages in the tests' own environment."""
    environment = Environment.made(tmp_path_factory.mktemp("full") / "environment")
    environment.install("--no-deps", archives[0], shelf=archives[0].parent)
    environment.borrow_packages()
    return environment


@pytest.fixture
def work(full: Environment, tmp_path: Path) -> Path:
    """A folder outside the repository, in which Python imports distsim from the wheel."""
    code = "import distsim; print(distsim.__file__)"
    assert Path(full.run("-c", code, folder=tmp_path, name="python").strip()).is_relative_to(full.packages)
    return tmp_path


@pytest.mark.real
def test_scenarios_are_simulated_and_measured(full: Environment, work: Path) -> None:
    scenario = example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 5, "compute.mean": "20 ms"})
    (work / "run.toml").write_text(scenario.dumps())
    for command in ("simulate", "measure"):
        assert json.loads(full.run(command, "run.toml", "--json", folder=work))["updates"] == 5


@pytest.mark.real
def test_a_lab_is_started_and_graded(full: Environment, work: Path) -> None:
    full.run("lab", "start", "03", "mine", folder=work)
    place = work / "mine" / "03_ring"
    assert not (place / "solution.py").exists()
    stub = full.run("grade", "03", "--submission", place, folder=work)
    assert re.search(r"total +│ +0 │ +20 │", stub)
    assert "write chunks: Cuts a contiguous tensor" in stub
    shutil.copyfile(ROOT / "labs" / "03_ring" / "solution.py", place / "tasks.py")
    assert re.search(r"total +│ +20 │ +20 │", full.run("grade", "03", "--submission", place, folder=work))


@pytest.fixture
def server(full: Environment, work: Path) -> Iterator[tuple[str, Path]]:
    """The address of `distsim course`, and the learner's copy."""
    port = free_port()
    kinds = {f"JUPYTER_{kind}_DIR": str(work / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    process = subprocess.Popen(
        [full.program("distsim"), "course", "mine", "--no-browser", "--port", str(port)],
        cwd=work, env=variables() | kinds | {"HOME": str(work), "JUPYTER_TOKEN": TOKEN}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0,
    )  # fmt: skip
    try:
        assert f"your copy of the course: {work / 'mine'}" in read_until(process, "is running at")
        wait_for(port)
        yield f"127.0.0.1:{port}", work / "mine"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.real
def test_the_course_is_opened_and_a_chapter_runs(full: Environment, server: tuple[str, Path]) -> None:
    address, copy = server
    listed = asked("GET", f"http://{address}/api/contents/course")
    chapters = sorted(one["path"] for one in listed["content"] if re.match(r"\d\d[b-z]?_", one["name"]))
    assert chapters == sorted(f"course/{path.name}" for path in (ROOT / "course").glob("[0-9][0-9]*_*.ipynb"))
    sources = [cell.source for cell in nbformat.read(copy / CHAPTER, as_version=4).cells if cell.cell_type == "code"]
    cells = [re.sub(r"(chapter\.guess\([^,]+), \.\.\.", r"\1, 57", source) for source in sources]
    files = executed(address, CHAPTER, [*cells, "import distsim\nprint(distsim.__file__)"])
    assert Path(files.strip()).is_relative_to(full.packages)
    assert [one.guess for one in Record(copy / "course" / FILE).kept()] == [57.0]
    changed = subprocess.run(
        ["git", "status", "--porcelain", "distsim-course"], cwd=ROOT, capture_output=True, check=True
    )
    assert changed.stdout == b""


def executed(address: str, path: str, cells: list[str]) -> str:
    """Runs cells in a kernel of the server, for a notebook. Returns what the last cell printed."""
    websocket = pytest.importorskip("websocket")
    kernel = start_kernel(address, path)
    connection = websocket.create_connection(
        f"ws://{address}/api/kernels/{kernel}/channels", timeout=200, header=[f"Authorization: token {TOKEN}"]
    )
    try:
        for source in cells:
            printed = answer(connection, source)
    finally:
        connection.close()
    return printed


def start_kernel(address: str, path: str) -> str:
    body = {"path": path, "name": Path(path).name, "type": "notebook", "kernel": {"name": "python3"}}
    kernel: str = asked("POST", f"http://{address}/api/sessions", body)["kernel"]["id"]
    return kernel


def answer(connection: Any, source: str) -> str:
    """Runs a cell, and returns what it printed, once the kernel is idle again. A cell that fails is a failure."""
    own, printed = uuid.uuid4().hex, ""
    header = {"msg_id": own, "msg_type": "execute_request", "username": "", "session": "tests", "version": "5.3"}
    content = {"code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    connection.send(json.dumps(message))
    while True:
        received = connection.recv()
        if isinstance(received, bytes):
            continue  # a widget's arrays
        said = json.loads(received)
        if said["parent_header"].get("msg_id") != own:
            continue
        assert said["msg_type"] != "error", (source, said["content"])
        if said["msg_type"] == "stream":
            assert said["content"]["name"] == "stdout", (source, said["content"]["text"])
            printed += said["content"]["text"]
        elif said["msg_type"] == "status" and said["content"]["execution_state"] == "idle":
            return printed
