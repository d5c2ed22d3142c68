"""Whatever a rank does wrong, the error names it and where it stood, in time, and nothing of the run is left."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from distsim import RunError, Scenario
from distsim.runtime.launch.launcher import Launch, launched
from distsim.runtime.measure import measure_all

RANKS = Path(__file__).parent / "ranks"
pytestmark = [pytest.mark.real, pytest.mark.more]
LATE_SECONDS = 5.0  # what the end of a run may take beyond its deadline


def run_little(
    fault: str,
    rank: int = 1,
    ranks: int = 3,
    deadline: float = 60.0,
    others: str = "wait",
    second: dict[str, str] | None = None,
) -> None:
    """Ranks that do `others`, but for `rank` and those in `second`, which do the faults named there."""
    job = {"faults": {str(rank): fault} | (second or {}), "others": others}
    roles = [f"worker {number}" for number in range(ranks)]
    with launched(Launch("a little run", roles, (str(RANKS / "little.py"),), job, deadline)):
        pass


def error_of(fault: str, **options: Any) -> str:
    started = time.monotonic()
    with pytest.raises(RunError) as caught:
        run_little(fault, **options)
    assert time.monotonic() - started < options.get("deadline", 60.0) + LATE_SECONDS
    return str(caught.value)


def line_of(text: str, file: Path = RANKS / "little.py") -> str:
    """The place "file:line" of the first line that holds `text`."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if text in line:
            return f"{file.name}:{number}"
    raise AssertionError(text)


def test_a_rank_that_raises_is_shown_with_its_own_traceback() -> None:
    message = error_of("raise")
    first, *rest = message.splitlines()
    assert first == (
        f"a little run: rank 1 (worker 1) raised ValueError at {line_of('broken on purpose')}, during its part"
    )
    assert rest[0].startswith("Traceback")
    assert rest[-1] == "ValueError: broken on purpose"
    assert "torch" not in message
    assert "ChildFailedError" not in message


def test_a_rank_that_leaves_with_sys_exit_is_named_with_its_code() -> None:
    assert f"rank 1 (worker 1) called sys.exit(9) at {line_of('sys.exit(9)')}" in error_of("sys_exit")


STANDING = "during its part at " + line_of("context.slot.doing")


@pytest.mark.parametrize(
    ("fault", "how"),
    [
        ("exit", "ended with exit code 7"),
        ("kill", "was ended by SIGKILL"),
        pytest.param("abort", "was ended by SIGABRT", marks=pytest.mark.thorough),
    ],
)
def test_a_rank_that_vanishes_is_named_with_what_it_was_doing(fault: str, how: str) -> None:
    assert f"rank 1 (worker 1) {how} {STANDING}" in error_of(fault)


@pytest.mark.parametrize(
    ("fault", "how"),
    [("kill_torchrun", "SIGKILL"), pytest.param("terminate_torchrun", "SIGTERM", marks=pytest.mark.thorough)],
)
def test_a_torchrun_that_is_ended_is_named_and_its_ranks_are_ended(fault: str, how: str) -> None:
    message = error_of(fault)
    assert f"torchrun was ended by {how}, and no rank reported a failure: something outside ended the run" in message
    assert "\n" not in message


def test_a_rank_that_leaves_early_without_an_error_is_found() -> None:
    message = error_of("leave", others="none")
    assert f"rank 1 (worker 1) left before the run was over {STANDING}" in message


def test_the_deadline_names_those_first_that_all_wait_for() -> None:
    for deadline in (4.0, 20.0, 90.0):  # a busy machine may still be starting the ranks when the first has passed
        message = error_of("loop", others="wait", deadline=deadline, second={"2": "busy_in_c"})
        if [float(spent) > 0.2 for spent in re.findall(r" has spent ([\d.]+) s", message)] == [True, True]:
            break
    head, *lines = message.splitlines()
    assert f"not finished {deadline:g} s after its launch" in head
    assert (
        f"Cure: find out what holds up the first rank below, or give a longer deadline: --deadline {2 * deadline:g}"
        in head
    )
    loop, sum_line = f"({line_of('while True')}|{line_of('  pass')})", line_of("sum(itertools")
    busy = "\n".join(lines[:2])
    for rank, place in ((1, loop), (2, sum_line)):
        spent = re.search(
            rf"^rank {rank} \(worker {rank}\) has spent ([\d.]+) s in its part at {place}$", busy, re.MULTILINE
        )
        assert spent, message
        assert 0.2 < float(spent[1]) <= deadline
    assert re.fullmatch(
        rf"rank 0 \(worker 0\) has waited [\d.]+ s in recv from another rank at {line_of('.wait()')}", lines[2]
    )
    assert any(re.fullmatch(f"  {loop} in forever", line) for line in lines[3:])
    assert f"  {sum_line} in busy_in_c" in lines[3:]


def test_ranks_that_ignore_sigterm_are_ended_all_the_same() -> None:
    started = time.monotonic()
    assert "rank 1 (worker 1) raised ValueError" in error_of("raise", others="deaf")
    assert time.monotonic() - started < 20.0


def test_a_child_that_a_rank_left_behind_is_ended_after_a_good_run(processes_left: Callable[[], int]) -> None:
    run_little("child", others="none")
    assert processes_left() == 0


def test_a_flood_of_output_neither_fills_memory_nor_stops_the_run() -> None:
    before = psutil.Process().memory_info().rss
    run_little("flood", ranks=2, others="none", deadline=60.0)
    assert psutil.Process().memory_info().rss - before < 50e6


def test_what_a_rank_printed_last_is_part_of_the_error(tmp_path: Path) -> None:
    script = tmp_path / "says.py"
    script.write_text(
        "import os, time\n"
        "from distsim.runtime.launch import rank_context\n"
        "with rank_context.entered() as context:\n"
        "    print('words of rank', context.rank)\n"
        "    time.sleep(0.5)\n"
        "    os._exit(3) if context.rank == 0 else time.sleep(60)\n"
    )
    words = r"rank 0 \(worker 0\) ended with exit code 3 .*it last printed:\n  words of rank 0$"
    launch = Launch("a run", ["worker 0", "worker 1"], (str(script),), {}, 60.0)
    with pytest.raises(RunError, match=words), launched(launch):
        pass


def test_a_script_that_does_not_start_shows_what_python_said(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text("import a_module_that_is_nowhere\n")
    words = r"ended with exit code 1 before it started(?s:.*)No module named 'a_module_that_is_nowhere'"
    with pytest.raises(RunError, match=words), launched(Launch("a run", ["worker 0"], (str(script),), {}, 60.0)):
        pass


def scenario(kind: str, workers: int) -> Scenario:
    return Scenario.of(
        {
            "name": "faulty",
            "steps": 6,
            "cluster": {"workers": workers, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"mean": "10 ms"},
            "workload": {"gradient": "64 KiB", "batch": 1},
            "policy": {"kind": "synchronous"},
            "communication": {"kind": kind},
        }
    )


def real_error(
    monkeypatch: pytest.MonkeyPatch, kind: str, deadline: float = 60.0, workers: int = 2, **fault: Any
) -> str:
    monkeypatch.setenv("DISTSIM_TEST_FAULT", json.dumps(fault))
    started = time.monotonic()
    with pytest.raises(RunError) as caught:
        measure_all([scenario(kind, workers)], deadline_seconds=deadline, entry=(str(RANKS / "faulty.py"),))
    assert time.monotonic() - started < deadline + LATE_SECONDS
    return str(caught.value)


def test_a_peer_that_is_killed_is_named_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    message = real_error(monkeypatch, "ring", rank=1, where="peers", call=3, fault="kill")
    assert re.search(r"rank 1 \(worker 1\) was ended by SIGKILL during compute of step 2 at peers\.py:\d+", message)
    assert "onnection" not in message


def test_a_worker_that_raises_is_the_cause_and_not_the_lost_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first three sleeps are the warm-up's.
    message = real_error(monkeypatch, "parameter_server", rank=0, where="worker", call=5, fault="raise")
    assert message.startswith("measure 'faulty': rank 0 (worker 0) raised ValueError at faulty.py:")
    assert "during compute of step 1" in message
    assert "onnection" not in message


def test_a_rule_that_raises_is_the_servers_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    message = real_error(monkeypatch, "parameter_server", rank=2, where="rule", call=9, fault="raise")
    assert "rank 2 (server 2) raised ValueError" in message
    assert "in _decide" in message


def test_a_deadline_that_passes_while_all_ranks_start_is_put_down_to_the_machine() -> None:
    head = error_of("none", ranks=2, deadline=0.1).splitlines()[0]
    assert head == (
        "a little run: not finished 0.1 s after its launch, its deadline. No process had loaded torch by then, so this "
        "machine is busy. Cure: end other programs, or give a longer deadline: --deadline 0.2 in a terminal, "
        "deadline_seconds in Python"
    )


def test_the_deadline_tells_who_waits_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    for deadline in (9.0, 40.0, 120.0):  # a busy machine may still be starting the ranks when the first has passed
        message = real_error(monkeypatch, "parameter_server", deadline, rank=1, where="worker", call=6, fault="wait")
        if "in compute of step 2" in message:
            break
    lines = message.splitlines()
    assert re.match(r"rank 1 \(worker 1\) has spent [\d.]+ s in compute of step 2 at faulty\.py:\d+", lines[1])
    waiting = "\n".join(lines[2:4])
    assert re.search(
        r"rank 2 \(server 2\) has waited [\d.]+ s in recv from worker 1 at (server|inbox)\.py:\d+", waiting
    )
    assert re.search(
        r"rank 0 \(worker 0\) has waited [\d.]+ s in recv from the server, rank 2, after step 2 at channel\.py:\d+",
        waiting,
    )


@pytest.mark.parametrize(
    ("kind", "where", "rank", "words"),
    [
        ("ring", "sum", 1, "rank 1 (worker 1) raised WrongSumError"),
        ("parameter_server", "parameters", 0, "worker 0 ends with other parameters than the server"),
        ("parameter_server", "update", 1, "parameters are not what the gradients it applied lead to"),
    ],
)
def test_numbers_that_come_out_wrong_are_noticed(
    monkeypatch: pytest.MonkeyPatch, kind: str, where: str, rank: int, words: str
) -> None:
    workers = 2 if kind == "ring" else 1
    assert words in real_error(monkeypatch, kind, workers=workers, rank=rank, where=where)


def test_a_failed_run_leaves_this_process_as_it_was() -> None:
    def state() -> tuple[int, int, dict[str, str], object]:
        handler = signal.getsignal(signal.SIGTERM)
        return psutil.Process().num_fds(), threading.active_count(), dict(os.environ), handler

    before = state()
    with pytest.raises(RunError):
        run_little("exit", ranks=1, rank=0)
    assert state() == before
