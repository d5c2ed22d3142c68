"""What other programs take of the cores during a real run is told, and the run's own work is not taken for theirs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from distsim.runtime import other_work
from distsim.runtime.launch import fork_client
from distsim.runtime.launch.forked_program import may_fork
from distsim.runtime.launch.launcher import Launch, launched

TICK_SECONDS = 0.05  # the kernel counts a core's work by ticks, and each process's apart
WORK_SECONDS = 1.0
WORKS = f"import time\nwhile time.thread_time() < {WORK_SECONDS}: pass\nprint(time.thread_time(), flush=True)"


def test_work_of_a_child_is_own_and_everyones() -> None:
    everyone, own = other_work._everyones_seconds(), other_work._own_seconds()
    child = subprocess.run([sys.executable, "-c", WORKS], capture_output=True, text=True, check=True)
    worked = float(child.stdout)
    assert other_work._own_seconds() - own > worked - TICK_SECONDS
    assert other_work._everyones_seconds() - everyone > worked - TICK_SECONDS


RANK = """
from distsim.runtime.launch import rank_context

with rank_context.entered():
"""


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Runs two ranks that do this, by a new fork server, which lives on."""

    def run(what: str) -> None:
        rank = tmp_path / "rank.py"
        rank.write_text(RANK + textwrap.indent(what, "    "))
        with launched(Launch("trial", ["worker 0", "worker 1"], [str(rank)], {}, 120.0)):
            assert fork_client._server is not None or not may_fork()

    fork_client.end()
    yield run
    fork_client.end()


@pytest.mark.real
def test_work_of_ranks_is_own_while_their_fork_server_lives_on(launch: Callable[[str], None]) -> None:
    launch("pass")
    started = other_work._own_seconds()
    launch("pass")
    idle = other_work._own_seconds()
    launch(WORKS)
    assert other_work._own_seconds() - idle > idle - started + 1.5 * WORK_SECONDS  # of two ranks


@pytest.mark.real
def test_the_end_of_a_fork_server_changes_nothing(launch: Callable[[str], None]) -> None:
    launch(WORKS)  # and the server has imported torch
    before = other_work._own_seconds()
    fork_client.end()
    assert before <= other_work._own_seconds() < before + WORK_SECONDS


@pytest.mark.real
def test_what_this_process_started_beside_its_runs_is_others(launch: Callable[[str], None]) -> None:
    launch("pass")
    own = other_work._own_seconds()
    works = [sys.executable, "-c", WORKS + "\nimport sys; sys.stdin.read()"]
    with subprocess.Popen(works, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert other_work._own_seconds() - own < WORK_SECONDS
        child.stdin.close()


def test_work_of_a_process_that_nobody_waits_for_is_others(monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = iter([100.0, 104.0])
    own, clock = iter([10.0, 11.0]), iter([0.0, 2.0])
    monkeypatch.setattr(other_work, "_everyones_seconds", lambda: next(everyone))
    monkeypatch.setattr(other_work, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(other_work.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(other_work, "usable_cores", lambda: 4)
    with other_work.other_work(3) as found:
        pass
    assert found.as_dict() == {"cores": 4, "processes": 3, "taken": 1.5}


@pytest.mark.parametrize(
    ("cores", "processes", "taken", "told"),
    [
        (2, 2, 0.3, True),
        (2, 2, 0.1, False),
        (64, 8, 20.0, False),
        (64, 48, 20.0, True),
        (1, 2, 0.5, True),
    ],
)  # fmt: skip
def test_only_cores_that_the_run_needed_are_noted(cores: int, processes: int, taken: float, told: bool) -> None:
    notes = other_work.notes({"other_work": {"cores": cores, "processes": processes, "taken": taken}})
    assert len(notes) == told
    assert all(f"took {taken:.1f} of this machine's {cores} core" in note for note in notes)
    assert other_work.notes({}) == []
