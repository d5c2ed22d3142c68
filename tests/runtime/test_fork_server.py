"""Runs of one launching process share a fork server, and each run is as if its agent had been started anew."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from distsim.runtime.launch import fork_server
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
    fork_server.end()
    yield file
    fork_server.end()


def found(script: Path) -> dict[str, Any]:
    with launched(Launch("trial", ["worker 0"], [str(script)], {}, 120.0, imports=["json"])):
        return dict(json.loads((script.parent / "found.json").read_text()))


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
    assert first["server"] == second["server"] == psutil.Process().children()[0].pid
    assert (first["told"], second["told"]) == (None, "again")
    assert (first["cores"], second["cores"]) == (sorted(cores), sorted(one))
    assert second["folder"] == str(tmp_path / "elsewhere") != first["folder"]
    assert first["run"] != second["run"]
    for run in (first, second):
        assert run["shown"] == 3 * [run["run"]]
        assert run["threads"] == 1, "a lock of another thread would stay locked in the rank"
        assert run["first"] == str(tmp_path), "a script finds its neighbours"
    (server,) = psutil.Process().children()
    assert server.environ()[RUN_VARIABLE] == NO_RUN


def test_what_libraries_read_at_import_asks_for_another_server(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = found(script)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    second = found(script)
    assert first["server"] != second["server"] == psutil.Process().children()[0].pid
    assert not psutil.pid_exists(first["server"])


def test_a_server_that_was_killed_is_replaced(script: Path) -> None:
    first = found(script)
    os.kill(first["server"], signal.SIGKILL)
    assert found(script)["server"] != first["server"]


def test_without_forks_each_agent_is_a_new_python(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "may_fork", lambda: False)
    assert found(script)["server"] == os.getpid()


def test_waiting_has_an_end() -> None:
    ours, theirs = socket.socketpair()
    serving = threading.Thread(target=served, args=[theirs])
    serving.start()
    server = fork_server.ForkServer(ours)
    process = server.fork([sys.executable, "-m", "this"], os.environ, streams=[0, 1, 2])
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    assert time.monotonic() - began >= 0.2
    assert process.poll() is process.returncode is None
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10.0) == process.poll() == -signal.SIGKILL
    server.close()
    serving.join(10.0)
    assert not serving.is_alive()


def served(channel: socket.socket) -> None:
    with channel, pytest.raises(EOFError, match="the client is gone"):
        fork_server.main(channel, None)


def test_a_server_ends_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "IDLE_SECONDS", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fork_server.main(theirs, 0)  # returns


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
