"""What a body starts ends with it, with its caller and with its supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from distsim.testbed.process_end import ProcessEnd
from distsim.testbed.sandbox import Limits, Sandbox
from tests.testbed.confined import TRUST, awaited, confining

pytestmark = pytest.mark.usefixtures("nothing_left")


def _bomb() -> int:
    """Forks until it may not, 400 times at most."""
    for count in range(400):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        except BlockingIOError:
            return count
    return 400


@confining
@pytest.mark.parametrize(("private", "most"), [(True, 39), (False, 79)])
def test_a_fork_bomb_is_bound_and_gone(folder: Path, private: bool, most: int) -> None:
    def bomb() -> None:
        print(_bomb(), flush=True)
        time.sleep(60)

    user = None
    limits = Limits(processes=40)
    bodies = [bomb, bomb]
    with Sandbox.start(bodies, folder=folder, limits=limits, private=private) as sandbox:
        counts = [int(os.read(output, 100)) for output in sandbox.outputs]
        user = psutil.Process(sandbox.pids[0]).uids().real
        children = [child for pid in sandbox.pids for child in psutil.Process(pid).children()]
        assert len(children) == sum(counts)
        if private:
            assert counts == [most, most]
        else:
            assert sum(counts) == most - 1
    assert not any(child.is_running() for child in children)
    assert user != 0


@TRUST
@pytest.mark.parametrize("by_kill", [True, False])
def test_a_daemon_does_not_outlive_its_rank(folder: Path, trusted: bool, by_kill: bool) -> None:
    def daemon() -> None:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print("daemon", flush=True)
                os.write(writing, b"1")
                time.sleep(60)
            os._exit(0)
        os.wait()
        os.read(reading, 1)
        if by_kill:
            time.sleep(60)

    with Sandbox.start([daemon], folder=folder, trusted=trusted) as sandbox:
        assert os.read(sandbox.outputs[0], 100) == b"daemon\n"
        if by_kill:
            sandbox.kill()
        else:
            assert sandbox.wait(60.0) == [ProcessEnd(code=0)]
            # A daemon holds the output open: nobody is left when it ends.
        assert os.read(sandbox.outputs[0], 100) == b""


CALLER = """
import os, sys, time
from pathlib import Path
from distsim.testbed.sandbox import Sandbox
def endless():
    if os.fork() == 0:
        os.setsid()
    print("begun", flush=True)
    time.sleep(60)
sandbox = Sandbox.start([endless, endless], folder=Path(sys.argv[1]), trusted=sys.argv[2] == "True")
for output in sandbox.outputs:
    got = b""
    while got.count(b"begun") < 2:
        got += os.read(output, 100)
bystander = os.fork()  # has all that the caller has open, and outlives it
if bystander:
    print(os.getpid(), bystander, flush=True)
time.sleep(60)
"""


@TRUST
@pytest.mark.parametrize("victim", ["caller", pytest.param("supervisor", marks=confining)])
def test_killing_the_caller_or_a_guard_leaves_nothing(folder: Path, trusted: bool, victim: str) -> None:
    if trusted and victim == "supervisor":
        return  # nobody watches the watchman of trusted code
    program = [sys.executable, "-c", CALLER, str(folder), str(trusted)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        pid, bystander = map(int, caller.stdout.readline().split())
        family = [process for process in psutil.Process(pid).children(recursive=True) if process.pid != bystander]
        assert len(family) == (6 if trusted else 8)  # 2 supervisors, 2 ranks and their 2 children; 2 first processes
        supervisors = [process for process in family if process.ppid() == pid]
        for process in [psutil.Process(pid)] if victim == "caller" else supervisors:
            process.kill()
        mine = [process for process in family if victim == "caller" or process not in supervisors]
        gone = awaited(lambda: not any(map(_lives, mine)))
        os.kill(bystander, signal.SIGKILL)
        caller.kill()
        assert gone


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
