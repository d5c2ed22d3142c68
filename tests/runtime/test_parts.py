"""The parts of the launcher that need no torch: status slots, drained output, the clock, ending processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from distsim.runtime.launch import process_tree
from distsim.runtime.launch.lifeline import RUN_VARIABLE
from distsim.runtime.launch.rank_output import TAIL_BYTES, Output, output_pipe
from distsim.runtime.recording import clock, rank_status
from distsim.runtime.recording.rank_status import State, StatusSlot


def test_a_slot_says_what_since_when_and_where(tmp_path: Path) -> None:
    rank_status.create(tmp_path, 3)
    slot = StatusSlot(tmp_path, 1)
    slot.begin()
    before = time.monotonic()
    slot.doing("recv from worker 0", waiting=True)
    slot.done(4)
    none, found, _ = rank_status.read(tmp_path)
    assert none.state is State.NOT_STARTED
    assert (found.rank, found.pid, found.state, found.steps_done) == (1, os.getpid(), State.RUNNING, 4)
    assert (found.activity, found.waiting) == ("recv from worker 0", True)
    assert before <= found.since_seconds <= time.monotonic()
    assert found.place.startswith("test_parts.py:")
    slot.doing("compute")
    slot.finished()
    found = rank_status.read(tmp_path)[1]
    assert (found.activity, found.waiting, found.state) == ("compute", False, State.FINISHED)


def test_a_slot_is_written_in_microseconds(tmp_path: Path) -> None:
    rank_status.create(tmp_path, 1)
    slot = StatusSlot(tmp_path, 0)
    best = min(seconds_of(lambda: slot.doing("compute of step 7")) for _ in range(200))
    assert best < 50e-6


def seconds_of(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start


def test_a_text_too_long_for_a_slot_spoils_no_other(tmp_path: Path) -> None:
    rank_status.create(tmp_path, 2)
    StatusSlot(tmp_path, 0).doing("x" * 10_000)
    assert rank_status.read(tmp_path)[0].activity == "x" * 256
    assert rank_status.read(tmp_path)[1].activity == ""


def test_output_keeps_the_end_and_never_blocks_the_writer(tmp_path: Path) -> None:
    with Output(tmp_path, ["0"]) as output:
        with output_pipe(tmp_path, "0").open("wb") as pipe:
            for number in range(20_000):
                pipe.write(b"%d\n" % number)
        give_up = time.monotonic() + 5
        while output.tail("0")[-1:] != ["19999"] and time.monotonic() < give_up:
            time.sleep(0.01)
        assert output.tail("0", lines=2) == ["19998", "19999"]
        assert len(output._tails["0"]) <= TAIL_BYTES


def test_sleeping_ends_neither_early_nor_much_too_late() -> None:
    lateness = []
    for _ in range(20):
        moment = time.monotonic() + 0.003
        clock.sleep_until(moment)
        lateness.append(time.monotonic() - moment)
    assert min(lateness) >= 0.0
    assert sorted(lateness)[5] < 0.5e-3


def test_waiting_ends_at_the_moment_or_when_it_is_stopped() -> None:
    stopped = threading.Event()
    moment = time.monotonic() + 0.01
    assert not clock.wait_until(moment, stopped)
    assert time.monotonic() >= moment
    threading.Timer(0.01, stopped.set).start()
    moment = time.monotonic() + 30.0
    assert clock.wait_until(moment, stopped)
    assert time.monotonic() < moment - 20.0


def test_processes_of_a_run_are_found_by_its_id_and_ended_even_if_deaf() -> None:
    run_id = uuid.uuid4().hex
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    environment = os.environ | {RUN_VARIABLE: run_id}
    child = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, start_new_session=True, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    with child.stdout:
        child.stdout.readline()
        assert [process.pid for process in process_tree.of_run(run_id)] == [child.pid]
        process_tree.end(run_id, grace_seconds=0.1)
        assert process_tree.of_run(run_id) == []
    child.wait(5)


def test_processes_of_a_group_are_found_without_the_id_but_not_those_older_than_the_run() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        assert [process.pid for process in process_tree.of_run("nobody", [child.pid])] == [child.pid]
        assert process_tree.of_run("nobody", [child.pid], since=time.time() + 60) == []
    finally:
        child.kill()
        child.wait()
