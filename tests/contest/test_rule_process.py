"""A rule in a confined process decides as it does in this process, and sees nothing of the contest."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil
import pytest

from distsim import simulate
from distsim.contest.entry import Entry
from distsim.contest.problem import Problem, contest_folder
from distsim.contest.race import run
from distsim.contest.rule_process import confined_rule
from distsim.errors import InputError
from distsim.policies.own_rule import load_rule
from tests.contest.conftest import ASYNCHRONOUS, Write

ENTRIES = Path(__file__).parent / "entries"
HEAD = """from distsim.policies.rule import Decision
import os, sys, time
class Mine:
    def __init__(self):
        self.version = 0
    def arrived(self, worker, step, read_version):
        self.version += 1
        {first}
        return Decision(self.version, answers=((worker, self.version),))
"""

DROPS_MOST = """self.gradients = getattr(self, "gradients", 0) + 1
        if self.gradients % 50:
            self.version -= 1
            return Decision(applied=False, answers=((worker, self.version),))"""

pytestmark = [pytest.mark.real, pytest.mark.more]


def test_it_decides_as_in_this_process(problem: Problem) -> None:
    entry = Entry.at(ENTRIES / "own_rule", problem)
    scenario = entry.scenario.replacing({"steps": 20})
    with confined_rule(entry.folder, "rule.py:FirstTwo", 8, 160) as rule:
        found = simulate(scenario, rule=rule)
    expected = simulate(scenario, rule=load_rule(str(entry.folder / "rule.py:FirstTwo"), 8))
    assert found.contributions == expected.contributions
    assert found.updates == expected.updates


def refused(written: Write, problem: Problem, code: str) -> str:
    with pytest.raises(InputError) as told:
        run(Entry.at(written(ASYNCHRONOUS, code=code), problem), 1, problem)
    return str(told.value)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("raise KeyError(worker)", "raised KeyError at rule.py"),
        ("return None", "must be a Decision"),
        ("return Decision(version='9')", "its version must be a whole number"),
        ("return Decision(answers=((99, 0),))", "must go to workers 0 to 7"),
        ("self.version += 5", "comes next"),
        ("return Decision()", "every worker waits"),
        ("os._exit(0)", "its process has ended"),
        ("sys.exit(0)", "its process has ended"),
        ("x = bytearray(4 * 2**30)", "MemoryError|its process has ended"),
        ("open('/etc/passwd', 'a')", "raised"),
        ("return Decision(applied=False, answers=((worker, 0),))", "has made no update since"),
        (DROPS_MOST, "drops so many gradients that the run does not end"),
        ("import socket; socket.create_connection(('127.0.0.1', 22))", "raised"),
    ],
)
def test_what_it_does_wrong_is_told(first: str, told: str, written: Write, problem: Problem) -> None:
    found = refused(written, problem, HEAD.format(first=first))
    assert re.search(told, found), found
    assert "Cure: " in found


def test_it_cannot_read_the_contest(written: Write, problem: Problem) -> None:
    """Neither the file with the held-out seed, nor another entry, nor the process that asks."""
    places = [contest_folder() / "contest.toml", ENTRIES / "own_rule" / "rule.py", Path(f"/proc/{os.getpid()}/maps")]
    assert all(place.exists() for place in places)
    first = f"assert not any(map(os.path.exists, {[str(place) for place in places]}))"
    entry = Entry.at(written(ASYNCHRONOUS, code=HEAD.format(first=first)), problem)
    with confined_rule(entry.folder, "rule.py:Mine", 8, 160) as rule:
        assert rule.arrived(3, 0, 0).answers == ((3, 1),)


def test_a_rule_that_never_answers_is_given_up(
    written: Write, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("distsim.contest.rule_process.ANSWER_SECONDS", 5.0)
    told = refused(written, problem, HEAD.format(first="time.sleep(600)"))
    assert "takes more than 5 s for one decision" in told


def test_a_rule_that_is_slow_in_every_answer_is_given_up(
    written: Write, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("distsim.contest.rule_process.RUN_SECONDS", 4.0)
    told = refused(written, problem, HEAD.format(first="time.sleep(0.5)"))
    assert "takes more than" in told


SPEAKS_BY_ITSELF = """import os, stat, time
sockets = [number for number in range(3, 64) if os.path.exists(f"/proc/self/fd/{{number}}")]
sockets = [number for number in sockets if stat.S_ISSOCK(os.fstat(number).st_mode)]
assert sockets
class Mine:
    def arrived(self, worker, step, read_version):
        for number in sockets:
            os.write(number, {begin})
        while True:
            time.sleep(0.2)
            for number in sockets:
                os.write(number, b"x")
"""


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        ('(1000).to_bytes(4, "big")', "takes more than 3 s for one decision"),
        ('(2**32 - 1).to_bytes(4, "big")', "at most [0-9]+ pass"),
    ],
    ids=["byte by byte", "an answer of 4 GB"],
)
def test_a_rule_that_speaks_by_itself_gains_neither_time_nor_memory(
    begin: str, told: str, written: Write, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr("distsim.contest.rule_process.ANSWER_SECONDS", 3.0)
    found = refused(written, problem, SPEAKS_BY_ITSELF.format(begin=begin))
    assert re.search(told, found), found


def test_what_it_prints_is_for_nobody(
    written: Write, problem: Problem, capfd: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    entry = Entry.at(written(ASYNCHRONOUS, code=HEAD.format(first="print('x' * 100_000)")), problem)
    with confined_rule(entry.folder, "rule.py:Mine", 8, 160) as rule:
        assert rule.arrived(0, 0, 0).version == 1
    assert capfd.readouterr() == ("", "")


def test_no_process_is_left(written: Write, problem: Problem) -> None:
    entry = Entry.at(written(ASYNCHRONOUS, code=HEAD.format(first="os.fork() or time.sleep(600)")), problem)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with confined_rule(entry.folder, "rule.py:Mine", 8, 160) as rule:
        rule.arrived(0, 0, 0)
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
