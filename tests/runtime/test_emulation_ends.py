"""However a run on an emulated cluster ends, nothing of the cluster is left, and the machine's network is untouched."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psutil
import pytest

from distsim import RunError
from distsim.progress import Phase
from distsim.runtime.emulation.plan import Host, NetworkPlan
from distsim.runtime.launch.launcher import Launch, launched
from distsim.runtime.recording import rank_status
from distsim.runtime.recording.rank_status import State

pytestmark = [pytest.mark.real, pytest.mark.iproute2, pytest.mark.alone, pytest.mark.more]
RANKS_FOLDER = Path(__file__).parent / "ranks"
RANKS = 3
ROLES = [f"worker {rank}" for rank in range(RANKS)]
PLAN = NetworkPlan(tuple(Host((rank,), 1e7, 1e7) for rank in range(RANKS)), 0.0)

thorough = pytest.mark.thorough
STANDING_FOR_ALL = {(signal.SIGINT, "wait"), (signal.SIGTERM, "busy_in_c"), (signal.SIGKILL, "deaf")}


def links(process: Path) -> Iterator[str]:
    """What a process is in, and what it holds open."""
    for link in [process / "ns" / "net", *(process / "fd").iterdir()]:
        try:
            yield str(link.readlink())
        except OSError:
            continue


def namespaces_of(processes: list[int]) -> set[str]:
    """The network namespaces that these processes are in or hold open, such as "net:[4026531840]"."""
    found = set()
    for process in processes:
        try:
            found |= {link for link in links(Path("/proc", str(process))) if link.startswith("net:[")}
        except OSError:
            continue  # it has gone meanwhile
    return found


def namespaces() -> set[str]:
    """All of the machine that this test may see: also those that are kept by being mounted."""
    mounted = {f"net:[{number}]" for number in re.findall(r"net:\[(\d+)\]", Path("/proc/self/mountinfo").read_text())}
    return namespaces_of(psutil.pids()) | mounted


def of_tree(process: int) -> set[str]:
    """Those of a process's children and theirs, less its own."""
    children = [child.pid for child in psutil.Process(process).children(recursive=True)]
    return namespaces_of(children) - namespaces_of([process])


def came_true(condition: Callable[[], bool], seconds: float) -> bool:
    give_up = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return true


@pytest.fixture(autouse=True)
def machines_network() -> Iterator[None]:
    """The network devices of the machine are the same afterwards."""
    before = os.listdir("/sys/class/net")
    yield
    assert os.listdir("/sys/class/net") == before


@pytest.fixture
def parent(tmp_path: Path, fault: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has launched ranks on an emulated cluster, which would go on for ever."""
    command = [sys.executable, str(RANKS_FOLDER / "parent.py"), fault, "emulate"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)

    def running() -> bool:
        slots = [slot for file in tmp_path.glob("distsim-run-*/status") for slot in rank_status.read(file.parent)]
        return len(slots) == RANKS and all(slot.state is State.RUNNING for slot in slots)

    assert came_true(running, 30.0), "the ranks did not start"
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        pytest.param(number, fault, marks=() if (number, fault) in STANDING_FOR_ALL else thorough)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
        for fault in ("wait", "busy_in_c", "deaf")
    ],
)
def test_the_cluster_falls_with_the_launching_process(
    parent: subprocess.Popen[bytes], tmp_path: Path, processes_left: Callable[[], int], number: signal.Signals
) -> None:
    cluster = of_tree(parent.pid)
    assert len(cluster) == 1 + RANKS, "a switch, and a host for each rank"
    (os.killpg if number is signal.SIGINT else os.kill)(parent.pid, number)
    parent.wait(10)
    assert came_true(lambda: not processes_left(), 5.0), "ranks go on without the process that launched them"
    assert came_true(lambda: not cluster & namespaces(), 5.0), "namespaces are left"
    assert came_true(lambda: not list(tmp_path.glob("distsim-run-*")), 5.0), "the run's folder is left"


@pytest.mark.parametrize("fault", ["wait"])
def test_the_cluster_falls_with_the_agent(parent: subprocess.Popen[bytes], processes_left: Callable[[], int]) -> None:
    cluster = of_tree(parent.pid)
    (agent,) = psutil.Process(parent.pid).children()
    agent.kill()
    assert parent.wait(20) == 1, "a run error"
    assert came_true(lambda: not processes_left(), 5.0)
    assert came_true(lambda: not cluster & namespaces(), 5.0), "namespaces are left"


@contextmanager
def watched() -> Iterator[set[str]]:
    """The namespaces that this process's children are seen in while the block runs."""
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            seen.update(of_tree(os.getpid()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


@pytest.mark.parametrize(
    "fault",
    [
        "none",
        pytest.param("raise", marks=thorough),
        "kill",
        pytest.param("exit", marks=thorough),
        "kill_torchrun",
        pytest.param("child", marks=thorough),
    ],
)
def test_the_cluster_falls_with_its_run(fault: str) -> None:
    well = fault in ("none", "child")
    job = {"faults": {"1": fault}, "others": "none" if well else "wait"}
    script = (str(RANKS_FOLDER / "little.py"),)
    launch = Launch("a little run", ROLES, script, job, 60.0, network=PLAN)
    with watched() as seen, nullcontext() if well else pytest.raises(RunError), launched(launch):
        pass
    assert len(seen) >= 1 + RANKS, "a switch, and a host for each rank"
    assert came_true(lambda: not seen & namespaces(), 5.0), "namespaces are left"


def test_the_cluster_falls_with_an_error_of_the_launching_process() -> None:
    script = (str(RANKS_FOLDER / "little.py"),)
    job = {"faults": {}, "others": "wait"}
    with watched() as seen:

        def break_down(_phase: Phase) -> None:
            assert came_true(lambda: len(seen) >= 1 + RANKS, 20.0)
            raise ZeroDivisionError("on purpose")

        launch = Launch("a little run", ROLES, script, job, 60.0, progress=break_down, network=PLAN)
        with pytest.raises(ZeroDivisionError), launched(launch):
            pass
    assert len(seen) >= 1 + RANKS
    assert came_true(lambda: not seen & namespaces(), 5.0), "namespaces are left"
