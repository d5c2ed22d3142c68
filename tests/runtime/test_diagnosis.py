"""From what ranks left behind, the one that failed first is told apart from those that failed because of it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from distsim.runtime.launch.diagnosis import Evidence
from distsim.runtime.launch.rank_context import failure_file, stacks_file
from distsim.runtime.launch.rank_output import Output, output_pipe
from distsim.runtime.launch.torchrun_agent import FAILURES_FILE
from distsim.runtime.recording import clock
from distsim.runtime.recording.rank_status import State, Status

NOW = 100.0


def standing(rank: int, activity: str, since: float, *, waiting: bool = True, state: State = State.RUNNING) -> Status:
    return Status(rank, 1000 + rank, state, 0, waiting, since, f"work.py:{rank}", activity)


RUNNING = [standing(rank, "all_reduce of step 4", 90.0 + rank) for rank in range(3)]


class Scene:
    """A run's folder, filled by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed = ""  # by torchrun

    def raised(self, rank: int, seconds: float, kind: str = "ValueError", *, consequence: bool = False) -> None:
        record = {
            "rank": rank, "seconds": seconds, "kind": kind, "text": "why", "consequence": consequence,
            "traceback": f"Traceback ...\n{kind}: why of rank {rank}\n", "frames": [["/home/me/mine.py", 7, "step"]],
        }  # fmt: skip
        failure_file(self.folder, rank).write_text(json.dumps(record))

    def exited(self, *codes: tuple[int, int]) -> None:
        failures = [{"rank": rank, "exitcode": code} for rank, code in codes]
        (self.folder / FAILURES_FILE).write_text(json.dumps(failures))

    def of_failure(self, statuses: list[Status] = RUNNING, agent_code: int | None = 1) -> str:
        return self._ask(statuses, lambda evidence: evidence.of_failure(agent_code))

    def of_deadline(self, statuses: list[Status]) -> str:
        return self._ask(statuses, lambda evidence: evidence.of_deadline())

    def _ask(self, statuses: list[Status], question: Any) -> str:
        with Output(self.folder, ["agent", *(str(rank) for rank in range(len(statuses)))]) as output:
            roles = [f"worker {rank}" for rank in range(len(statuses))]
            output_pipe(self.folder, "agent").write_text(self.printed)
            deadline = time.monotonic() + 5.0
            while self.printed and not output.tail("agent") and time.monotonic() < deadline:
                time.sleep(0.01)
            answer: str = question(Evidence(self.folder, roles, statuses, output, NOW))
            return answer


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_first_error_in_time_is_the_cause(scene: Scene) -> None:
    scene.raised(0, 51.0)
    scene.raised(2, 50.0, "KeyError")
    scene.exited((0, 1), (2, 1), (1, -signal.SIGTERM))
    message = scene.of_failure()
    assert message.startswith("rank 2 (worker 2) raised KeyError at mine.py:7, during all_reduce of step 4\nTraceback")
    assert "rank 0" not in message


def test_an_earlier_lost_connection_is_not_the_cause_of_an_error(scene: Scene) -> None:
    scene.raised(0, 49.0, "RuntimeError", consequence=True)
    scene.raised(2, 50.0)
    scene.exited((0, 1), (2, 1))
    assert scene.of_failure().startswith("rank 2 (worker 2) raised ValueError")


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (7, "ended with exit code 7"),
        (-9, "was ended by SIGKILL"),
        (-15, "was ended by SIGTERM"),
        (-99, "was ended by signal 99"),
    ],
)
def test_a_rank_that_died_in_silence_goes_before_those_that_lost_it(scene: Scene, code: int, how: str) -> None:
    scene.raised(0, 49.0, "RuntimeError", consequence=True)
    scene.exited((1, code), (0, 1), (2, -signal.SIGTERM))
    assert scene.of_failure() == f"rank 1 (worker 1) {how} during all_reduce of step 4 at work.py:1"


@pytest.mark.parametrize(("left", "ended"), [(1, 2), (2, 1)])
def test_a_rank_that_left_without_an_error_goes_before_those_that_lost_it(scene: Scene, left: int, ended: int) -> None:
    """One of those has no time to say that it lost it: torchrun ends it."""
    scene.raised(0, 49.0, "RuntimeError", consequence=True)
    scene.exited((0, 1), (ended, -signal.SIGTERM))
    assert scene.of_failure() == (
        f"rank {left} (worker {left}) left before the run was over during all_reduce of step 4 at work.py:{left}"
    )


def test_a_rank_that_torchrun_ends_has_not_left_where_another_node_is_the_cause(scene: Scene) -> None:
    scene.raised(1, 49.0, "RuntimeError", consequence=True)
    scene.exited((1, 1), (0, -signal.SIGTERM))
    statuses = [*RUNNING[:2], standing(2, "", 0.0, state=State.ELSEWHERE)]
    assert scene.of_failure(statuses).startswith(
        "another node ended first, and says why; here rank 1 (worker 1) raised"
    )


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_launcher_that_lost_the_store_of_another_node_names_that_node(scene: Scene, elsewhere: bool) -> None:
    scene.printed = "torch.x.RendezvousConnectionError: The connection to the C10d store has failed.\n"
    state = State.ELSEWHERE if elsewhere else State.RUNNING
    found = scene.of_failure([*RUNNING[:2], standing(2, "", 0.0, state=state)])
    other = "another node ended first, and says why; here torchrun lost its connection to that node"
    assert (found == other) is elsewhere
    assert elsewhere or found.startswith("torchrun ended with exit code 1, and no rank reported a failure; it last")


def test_a_lost_connection_is_told_when_nothing_else_explains_it(scene: Scene) -> None:
    for rank in range(3):
        scene.raised(rank, 50.0 - rank, "RuntimeError", consequence=True)
    assert scene.of_failure().startswith("rank 2 (worker 2) raised RuntimeError")


@pytest.mark.parametrize(("code", "how"), [(1, "ended with exit code 1"), (None, "did not come to an end")])
def test_a_launcher_that_fails_is_told_from_its_ranks(scene: Scene, code: int | None, how: str) -> None:
    assert scene.of_failure(agent_code=code) == f"torchrun {how}, and no rank reported a failure"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_launcher_that_was_ended_is_told_in_one_sentence(scene: Scene, number: signal.Signals) -> None:
    assert scene.of_failure(agent_code=-number) == (
        f"torchrun was ended by {number.name}, and no rank reported a failure: something outside ended the run, such "
        "as a scheduler at its time limit or a system without memory"
    )


def test_a_very_long_traceback_keeps_both_ends(scene: Scene) -> None:
    scene.raised(1, 50.0)
    record = json.loads(failure_file(scene.folder, 1).read_text())
    record["traceback"] = "Traceback\n" + "deep\n" * 100_000 + "RecursionError: too deep\n"
    failure_file(scene.folder, 1).write_text(json.dumps(record))
    message = scene.of_failure()
    assert len(message) < 5000
    assert "Traceback" in message
    assert message.endswith("RecursionError: too deep")


def test_who_waits_for_nobody_comes_first_then_who_has_waited_longest(scene: Scene) -> None:
    statuses = [
        standing(0, "recv from rank 1", 97.0),
        standing(1, "compute of step 3", 95.0, waiting=False),
        standing(2, "recv from rank 0", 92.0),
        standing(3, "its end", 60.0, state=State.FINISHED),
        standing(4, "", 0.0, state=State.NOT_STARTED),
    ]
    assert scene.of_deadline(statuses).splitlines() == [
        "rank 4 (worker 4) has not started",
        "rank 1 (worker 1) has spent 5.0 s in compute of step 3 at work.py:1",
        "rank 2 (worker 2) has waited 8.0 s in recv from rank 0 at work.py:2",
        "rank 0 (worker 0) has waited 3.0 s in recv from rank 1 at work.py:0",
    ]


def test_the_place_is_the_innermost_line_of_the_main_thread_that_is_no_librarys(scene: Scene) -> None:
    library = json.__file__
    stacks_file(scene.folder, 0).write_text(
        'Current thread 0x00007f (most recent call first):\n  File "/home/me/other.py", line 3 in thread\n\n'
        f'Thread 0x00007e (most recent call first):\n  File "{library}", line 9 in recv\n'
        '  File "/home/me/mine.py", line 12 in step\n  File "<frozen runpy>", line 88 in _run_code\n'
    )
    first, *stack = scene.of_deadline([standing(0, "recv from rank 1", 92.0)]).splitlines()
    assert first == "rank 0 (worker 0) has waited 8.0 s in recv from rank 1 at mine.py:12"
    assert stack == [
        "Python stack of rank 0, innermost call first:",
        "  __init__.py:9 in recv",
        "  mine.py:12 in step",
    ]


def test_who_sleeps_is_told_by_the_line_that_sleeps(scene: Scene) -> None:
    stacks_file(scene.folder, 0).write_text(
        f'Thread 0x00007e (most recent call first):\n  File "{clock.__file__}", line 9 in sleep_until\n'
        '  File "/home/me/mine.py", line 12 in step\n'
    )
    first = scene.of_deadline([standing(0, "compute of step 1", 92.0, waiting=False)]).splitlines()[0]
    assert first == "rank 0 (worker 0) has spent 8.0 s in compute of step 1 at mine.py:12"
