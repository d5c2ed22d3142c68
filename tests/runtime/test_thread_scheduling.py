"""Threads of the backend are scheduled so that they do not push aside the one which holds the lock they want."""

from __future__ import annotations

import os
import threading

import psutil
import pytest

from distsim.examples import example
from distsim.runtime.devices.thread_scheduling import patient_threads
from distsim.runtime.measure import measure

pytestmark = pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux alone has SCHED_BATCH")

BACKEND_THREAD = "gloo_tcp_loop"


def test_only_threads_that_start_inside_are_patient() -> None:
    policies: list[int] = []

    def look() -> None:
        policies.append(os.sched_getscheduler(0))

    with patient_threads():
        inside = threading.Thread(target=look)
        inside.start()
    outside = threading.Thread(target=look)
    outside.start()
    inside.join()
    outside.join()
    assert sorted(policies) == sorted([os.SCHED_BATCH, os.SCHED_OTHER])
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_an_exception_takes_patience_away_too() -> None:
    with pytest.raises(ZeroDivisionError), patient_threads():
        raise ZeroDivisionError
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_where_it_is_forbidden_all_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with patient_threads():
        assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.real
@pytest.mark.more
def test_the_backends_threads_are_patient_and_the_ranks_own_are_not() -> None:
    scenario = example("synchronous_ring").replacing({"cluster.workers": 2, "steps": 40})
    found: dict[str, set[int]] = {BACKEND_THREAD: set(), "main": set()}
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
                for task, name in tasks.items():
                    if name == BACKEND_THREAD or task == process:
                        found["main" if task == process else name].add(os.sched_getscheduler(task))
        except (FileNotFoundError, ProcessLookupError):
            return  # it ended while it was looked at

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        measure(scenario)
    finally:
        over.set()
        watcher.join()
    assert found[BACKEND_THREAD] == {os.SCHED_BATCH}
    assert os.SCHED_OTHER in found["main"]  # and SCHED_BATCH for the moment in which it starts the backend


def name_of(file: str) -> str:
    with open(file, encoding="utf-8") as text:
        return text.read().strip()
