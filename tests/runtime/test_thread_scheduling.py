"""Threads of ranks are scheduled so that they do not push aside the one which holds the lock they want."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from distsim.examples import example
from distsim.runtime.busy_program import busy_program
from distsim.runtime.devices.thread_scheduling import be_patient
from distsim.runtime.measure import measure

pytestmark = pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux alone has SCHED_BATCH")

BACKEND_THREAD = "gloo_tcp_loop"


def in_a_thread(look: Callable[[], tuple[bool, int, int]]) -> tuple[bool, int, int]:
    """What `look` finds in a thread of its own, since this one shall keep its policy."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(look).result()


def patient() -> tuple[bool, int, int]:
    """What `be_patient` returns, then the policy of its thread, and of a thread that this one starts."""
    told = be_patient()
    with ThreadPoolExecutor(1) as pool:
        return told, os.sched_getscheduler(0), pool.submit(os.sched_getscheduler, 0).result()


def test_a_thread_and_those_that_it_starts_are_patient_and_no_others() -> None:
    assert in_a_thread(patient) == (True, os.SCHED_BATCH, os.SCHED_BATCH)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_where_it_is_forbidden_all_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert in_a_thread(patient) == (False, os.SCHED_OTHER, os.SCHED_OTHER)


def test_a_policy_that_was_chosen_stays() -> None:
    def idle_before() -> tuple[bool, int, int]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        return patient()

    assert in_a_thread(idle_before) == (False, os.SCHED_IDLE, os.SCHED_IDLE)


@pytest.mark.real
@pytest.mark.more
@pytest.mark.parametrize("emulate", [False, pytest.param(True, marks=pytest.mark.iproute2)])
def test_all_ranks_are_patient_and_share_one_session(emulate: bool) -> None:
    """Also beside a program that takes a core from one of them: Linux shares the cores first among sessions."""
    scenario = example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 40})
    policies: dict[str, set[int]] = {BACKEND_THREAD: set(), "main": set()}
    sessions: set[int] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            for process in psutil.Process().children(recursive=True):
                note(process.pid)

    def note(process: int) -> None:
        folder = f"/proc/{process}/task"
        try:
            tasks = {int(task): name_of(f"{folder}/{task}/comm") for task in os.listdir(folder)}
            if BACKEND_THREAD in tasks.values():
                sessions.add(os.getsid(process))
                for task, name in tasks.items():
                    if name == BACKEND_THREAD or task == process:
                        policies["main" if task == process else name].add(os.sched_getscheduler(task))
        except (FileNotFoundError, ProcessLookupError):
            return  # it ended while it was looked at

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        with busy_program(beside=1) as program:
            sessions.add(os.getsid(program.pid))
            measure(scenario, emulate=emulate)
    finally:
        over.set()
        watcher.join()
    assert policies == {BACKEND_THREAD: {os.SCHED_BATCH}, "main": {os.SCHED_BATCH}}
    assert sessions == {os.getsid(0)}


def name_of(file: str) -> str:
    with open(file, encoding="utf-8") as text:
        return text.read().strip()
