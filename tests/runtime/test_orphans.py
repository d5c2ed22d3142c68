"""However the launching process ends, its ranks end with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from distsim.examples import example
from distsim.runtime.recording import rank_status
from distsim.runtime.recording.rank_status import State
from distsim.trace import Trace

pytestmark = [pytest.mark.real, pytest.mark.alone, pytest.mark.more]
PARENT = Path(__file__).parent / "ranks" / "parent.py"
RANKS = 3


@pytest.fixture
def parent(tmp_path: Path, fault: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has launched ranks which would go on for ever."""
    process = subprocess.Popen([sys.executable, str(PARENT), fault], start_new_session=True, stderr=subprocess.DEVNULL)
    assert came_true(lambda: running(tmp_path), 30.0), "the ranks did not start"
    yield process
    process.kill()
    process.wait()


def running(folder: Path) -> bool:
    slots = [slot for file in folder.glob("distsim-run-*/status") for slot in rank_status.read(file.parent)]
    return len(slots) == RANKS and all(slot.state is State.RUNNING for slot in slots)


def came_true(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within so many seconds."""
    give_up = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return true


@pytest.mark.parametrize("fault", ["busy_in_c"], ids=["one rank runs no thread but one"])
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)],
)
def test_no_rank_outlives_the_launching_process(
    parent: subprocess.Popen[bytes],
    tmp_path: Path,
    processes_left: Callable[[], int],
    number: signal.Signals,
    code: int,
) -> None:
    assert processes_left() == 1 + 1 + 2 + RANKS, "the process, torchrun's agent, their fork servers, the ranks"
    # Ctrl-C is for all processes of the terminal's foreground group.
    (os.killpg if number is signal.SIGINT else os.kill)(parent.pid, number)
    assert parent.wait(10) == code
    assert came_true(lambda: not processes_left(), 5.0), "ranks go on without the process that launched them"
    assert came_true(lambda: not list(tmp_path.glob("distsim-run-*")), 5.0), "the run's folder is left"


@pytest.fixture
def slow_removal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes of the run wait for a second before they remove a folder, as on a busy machine."""
    (tmp_path / "sitecustomize.py").write_text(
        "import shutil, time\n"
        "at_once = shutil.rmtree\n"
        "shutil.rmtree = lambda *a, **k: (time.sleep(1), at_once(*a, **k))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


@pytest.mark.usefixtures("slow_removal")
@pytest.mark.parametrize("fault", ["wait"])
def test_torchrun_does_not_end_before_the_folder_of_the_abandoned_run_is_removed(
    parent: subprocess.Popen[bytes], tmp_path: Path, processes_left: Callable[[], int]
) -> None:
    parent.kill()
    parent.wait()
    assert came_true(lambda: not processes_left(), 10.0), "ranks go on without the process that launched them"
    assert not list(tmp_path.glob("distsim-run-*")), "the run's folder is left"


@pytest.mark.parametrize("fault", ["deaf"])
def test_no_rank_outlives_the_launching_process_and_torchrun_together(
    parent: subprocess.Popen[bytes], tmp_path: Path, processes_left: Callable[[], int]
) -> None:
    (agent,) = psutil.Process(parent.pid).children()
    agent.suspend()  # it can do nothing about its ranks any more
    parent.kill()
    parent.wait()
    agent.kill()
    assert came_true(lambda: not processes_left(), 5.0), "ranks go on without anybody"
    for folder in tmp_path.glob("distsim-run-*"):
        shutil.rmtree(folder)  # nobody was left to do it


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_measurement_saves_what_was_recorded(
    tmp_path: Path, processes_left: Callable[[], int], number: signal.Signals, code: int
) -> None:
    changes = {"steps": 10_000, "compute.mean": "5 ms", "workload.gradient": "64 KiB"}
    (tmp_path / "s.toml").write_text(example("synchronous_ring").replacing(changes).dumps())
    command = [sys.executable, "-m", "distsim", "measure", "s.toml", "--trace", "saved.npz"]
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, text=True)
    assert came_true(lambda: steps_done(tmp_path) >= 5, 60.0), "the run did not start"
    process.send_signal(number)
    _, said = process.communicate(timeout=30.0)
    assert process.returncode == code
    assert "what was recorded until then: saved.npz" in said
    assert "Traceback" not in said
    assert processes_left() == 0
    trace = Trace.load(tmp_path / "saved.npz")
    assert trace.metadata["complete"] is False
    assert 4 <= len(trace.updates) < 10_000


def steps_done(folder: Path) -> int:
    """By the rank that has done most, in the run whose folder lies here."""
    files = list(folder.glob("distsim-run-*/status"))
    return max((slot.steps_done for file in files for slot in rank_status.read(file.parent)), default=0)
