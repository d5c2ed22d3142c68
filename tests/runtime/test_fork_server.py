"""Runs of one launching process share a fork server, and each run is as if its agent had been started anew."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from distsim.runtime.launch import fork_client, fork_server
from distsim.runtime.launch.fork_client import ForkedProcess, _StartedServer
from distsim.runtime.launch.fork_server import NO_RUN
from distsim.runtime.launch.launcher import Launch, launched
from distsim.runtime.launch.lifeline import RUN_VARIABLE

pytestmark = pytest.mark.real

RANK = """
import json, os, sys
from pathlib import Path
import psutil
from distsim.runtime.launch import rank_context

with rank_context.entered() as context:
    agent = psutil.Process().parent().parent()
    found = {
        "server": agent.ppid(), "folder": os.getcwd(), "first": sys.path[0], "cores": sorted(os.sched_getaffinity(0)),
        "told": os.environ.get("TOLD"), "run": os.environ["DISTSIM_RUN"],
        "shown": [process.environ()["DISTSIM_RUN"] for process in (psutil.Process(), psutil.Process().parent(), agent)],
        "threads": psutil.Process().parent().num_threads(),
    }
    Path(os.environ["FOUND"], "found.json").write_text(json.dumps(found))
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A rank that writes down what it finds."""
    monkeypatch.setenv("FOUND", str(tmp_path))
    file = tmp_path / "rank.py"
    file.write_text(RANK)
    fork_client.end()
    yield file
    fork_client.end()


def found(script: Path) -> dict[str, Any]:
    with launched(Launch("trial", ["worker 0"], [str(script)], {}, 120.0, imports=["json"])):
        return dict(json.loads((script.parent / "found.json").read_text()))


def servers() -> list[psutil.Process]:
    """The fork servers of this process, which may have other children: those of tests that ran before."""
    return [child for child in psutil.Process().children() if fork_server.__name__ in child.cmdline()]


def test_runs_share_a_server_and_nothing_else(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables, the folder and the cores are each run's own, and the kernel shows each run's own id."""
    first = found(script)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("TOLD", "again")
    cores = os.sched_getaffinity(0)
    one = {max(cores)}
    os.sched_setaffinity(0, one)
    try:
        second = found(script)
    finally:
        os.sched_setaffinity(0, cores)
    (server,) = servers()
    assert first["server"] == second["server"] == server.pid
    assert (first["told"], second["told"]) == (None, "again")
    assert (first["cores"], second["cores"]) == (sorted(cores), sorted(one))
    assert second["folder"] == str(tmp_path / "elsewhere") != first["folder"]
    assert first["run"] != second["run"]
    for run in (first, second):
        assert run["shown"] == 3 * [run["run"]]
        assert run["threads"] == 1, "a lock of another thread would stay locked in the rank"
        assert run["first"] == str(tmp_path), "a script finds its neighbours"
    assert server.environ()[RUN_VARIABLE] == NO_RUN


def test_what_libraries_read_at_import_asks_for_another_server(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(script)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    second = found(script)
    (server,) = servers()
    assert first["server"] != second["server"] == server.pid
    assert not psutil.pid_exists(first["server"])


def test_a_server_that_was_killed_is_replaced(script: Path) -> None:
    first = found(script)
    os.kill(first["server"], signal.SIGKILL)
    assert found(script)["server"] != first["server"]


def test_without_forks_each_agent_is_a_new_python(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_client, "may_fork", lambda: False)
    assert found(script)["server"] == os.getpid()


@pytest.fixture
def served() -> Iterator[_StartedServer]:
    """A server of its own."""
    server = _StartedServer(None, os.environ)
    yield server
    server.close()


def forked(server: _StartedServer, folder: Path, program: str) -> ForkedProcess:
    (folder / "program.py").write_text(program)
    process = server.fork([sys.executable, str(folder / "program.py")], os.environ | {RUN_VARIABLE: "1" * 32})
    assert process is not None
    return process


SLEEPS = "import time; time.sleep(300)"


def test_waiting_has_an_end(served: _StartedServer, tmp_path: Path) -> None:
    sleeper = forked(served, tmp_path, SLEEPS)
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        sleeper.wait(0.2)
    assert time.monotonic() - began >= 0.2
    assert sleeper.poll() is sleeper.returncode is None
    os.kill(sleeper.forked(), signal.SIGKILL)
    assert sleeper.wait(10.0) == sleeper.poll() == -signal.SIGKILL


def test_a_program_that_ends_at_once_has_its_own_number_and_code(served: _StartedServer, tmp_path: Path) -> None:
    """Both are told before anybody asks."""
    told = tmp_path / "pid"
    for _ in range(10):
        process = forked(served, tmp_path, f"import os; print(os.getpid(), file=open({str(told)!r}, 'w')); 1 / 0")
        time.sleep(0.1)
        assert process.wait(10.0) == 1
        assert process.pid == int(told.read_text())


def test_a_run_goes_on_when_its_server_is_no_longer_asked(served: _StartedServer, tmp_path: Path) -> None:
    sleeper = forked(served, tmp_path, SLEEPS)
    number = sleeper.forked()
    served.close()
    assert psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    os.kill(number, signal.SIGTERM)
    assert sleeper.wait(10.0) == -signal.SIGTERM


def test_a_forked_child_has_no_server(script: Path) -> None:
    """The child asks nothing of its parent's server, and does not keep the server from its end."""
    server = found(script)["server"]
    child = os.fork()
    if child == 0:
        os._exit(0 if fork_client._server is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fork_client.end()
    assert not psutil.pid_exists(server)


def test_a_high_descriptor_is_waited_for() -> None:
    ready, tell = os.pipe()
    high = os.dup2(ready, 1500)
    try:
        assert not fork_client._readable(high, 0.0)
        os.write(tell, b"x")
        assert fork_client._readable(high, 0.0)
    finally:
        for descriptor in (ready, tell, high):
            os.close(descriptor)


def test_a_folder_that_was_removed_stops_no_run(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert found(script)["told"] is None
    monkeypatch.chdir(tmp_path)


def test_the_mask_of_new_files_is_each_runs_own(script: Path) -> None:
    first, before = found(script), os.umask(0o077)
    try:
        assert found(script)["server"] != first["server"]
    finally:
        os.umask(before)


def test_a_server_ends_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "IDLE_SECONDS", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        began = time.monotonic()
        fork_server.main(theirs, 0)
    assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize("how", ["pass", "import os; os.kill(os.getpid(), 9)"], ids=["ends", "is killed"])
def test_a_server_ends_with_its_launching_process(how: str, script: Path) -> None:
    """At the end of the launching process the server is gone; where that process is killed, very soon after."""
    program = (
        "import pathlib, psutil\n"
        "from distsim.runtime.launch.launcher import Launch, launched\n"
        f"with launched(Launch('trial', ['worker 0'], [{str(script)!r}], {{}}, 120.0, imports=['json'])):\n"
        "    print(psutil.Process().children()[0].pid, flush=True)\n"
        f"{how}\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    server, give_up = int(done.stdout), time.monotonic() + (0.0 if how == "pass" else 10.0)
    while psutil.pid_exists(server) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert not psutil.pid_exists(server)
