"""Programs that chapters run: what they print comes back, what they raise is told, and nothing stays behind."""

from __future__ import annotations

import time

import pytest

from distsim.course import run_program
from distsim.errors import InputError, RunError
from distsim.runtime.launch import process_tree
from distsim.runtime.launch.lifeline import RUN_VARIABLE

ENDLESS = f"""
import os, pathlib, subprocess, sys, time
print(os.environ["{RUN_VARIABLE}"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
time.sleep(60)
"""


def test_what_is_printed_comes_back() -> None:
    assert run_program("print('one')\nprint('two')") == ["one", "two"]


def test_what_is_raised_is_told() -> None:
    with pytest.raises(RunError, match="the program: NameError: name 'WORLD' is not defined"):
        run_program("print(WORLD)")
    with pytest.raises(RunError, match="the program: it said nothing"):
        run_program("raise SystemExit(3)")


def test_no_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="ranks = 0: must be at least 1"):
        run_program("print(1)", ranks=0)


def test_what_does_not_end_is_ended_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    end = process_tree.end

    def noted(run_id: str, groups: list[int], since: float) -> None:
        assert len(process_tree.of_run(run_id)) == 2
        end(run_id, groups, since)
        ended.append(run_id)

    monkeypatch.setattr(process_tree, "end", noted)
    start = time.monotonic()
    with pytest.raises(RunError, match="not finished after 3 s"):
        run_program(ENDLESS, deadline_seconds=3.0)
    assert time.monotonic() - start < 30.0
    assert process_tree.of_run(ended[0]) == []


@pytest.mark.real
def test_ranks_under_torchrun() -> None:
    source = "import os\nfor _ in range(3):\n    print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"
    assert run_program(source, ranks=2) == 3 * ["rank 0 of 2"] + 3 * ["rank 1 of 2"]
    with pytest.raises(RunError, match="the program: ValueError: no data"):
        run_program("raise ValueError('no data')", ranks=2)
