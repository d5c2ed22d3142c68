"""Run after run, a third of them with a fault: nothing piles up on the machine."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import psutil
import pytest

from distsim import RunError, Scenario
from distsim.runtime.measure import measure_all

pytestmark = [pytest.mark.real, pytest.mark.more]
FAULTY = str(Path(__file__).parent / "ranks" / "faulty.py")
FAULTS = ("kill", "exit", "raise", "loop", "print")
ENDLESS = ("loop", "print")
SLEEPS = {"ring": ("peers", 0), "parameter_server": ("worker", 3)}  # where workers sleep, and how often to warm up
IP = shutil.which("ip")


@dataclass(frozen=True)
class Left:
    """What runs could leave behind, besides processes, which the fixture of all tests here looks for."""

    files: frozenset[str]
    namespaces: frozenset[str]
    ports: frozenset[int]  # that this process or a child of it listens on
    descriptors: int


def left(folder: Path) -> Left:
    here = psutil.Process()
    sockets = [socket for process in (here, *here.children(recursive=True)) for socket in process.net_connections()]
    named = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False) if IP else None
    return Left(
        frozenset(str(path) for path in folder.rglob("*")),
        frozenset(named.stdout.splitlines()) if named else frozenset(),
        frozenset(socket.laddr.port for socket in sockets if socket.status == psutil.CONN_LISTEN),
        here.num_fds(),
    )


def scenario(kind: str, steps: int) -> Scenario:
    return Scenario.of(
        {
            "name": "again",
            "steps": steps,
            "cluster": {"workers": 2, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"mean": "2 ms"},
            "workload": {"gradient": "64 KiB", "batch": 1},
            "policy": {"kind": "synchronous"},
            "communication": {"kind": kind},
        }
    )


def test_run_after_run_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    processes_left: Callable[[], int],
    whole: Callable[[int, int], int],
) -> None:
    choice = random.Random(4)
    faults = [fault for fault, _ in zip(cycle(FAULTS), range(whole(2, 17)), strict=False)]
    plan = [*faults, *[None] * (whole(6, 50) - len(faults))]
    choice.shuffle(plan)
    before = None
    for number, fault in enumerate(plan):
        kind = choice.choice(list(SLEEPS))
        module, warm_up = SLEEPS[kind]
        steps = choice.randint(3, 30)
        harm = {"rank": 1, "where": module, "call": warm_up + choice.randint(1, steps), "fault": fault}
        monkeypatch.setenv("DISTSIM_TEST_FAULT", json.dumps(harm if fault else {"rank": -1}))
        measured = [scenario(kind, steps)]
        deadline = 8.0 if fault in ENDLESS else 60.0
        if fault is None:
            (trace,) = measure_all(measured, deadline_seconds=deadline, entry=(FAULTY,))
            assert len(trace.updates) == steps
        else:
            with pytest.raises(RunError):
                measure_all(measured, deadline_seconds=deadline, entry=(FAULTY,))
        assert processes_left() == 0, f"after run {number}, {fault}"
        # The first run may open what the process keeps for good.
        before = before or left(tmp_path)
        assert left(tmp_path) == before, f"after run {number}, {fault}"
    assert not before or not before.files
