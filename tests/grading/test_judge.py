"""Judges: those who work ahead find what one judge finds, while several checks run at once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import distsim.testbed
from distsim.errors import RunError
from distsim.grading.check import Check, Finding
from distsim.grading.judge import Judge, JudgesAhead
from distsim.grading.lab import Lab
from tests.grading.conftest import SUM, FakeTestbed, solved

PATIENCE_SECONDS = 30.0


@pytest.fixture
def testbeds(monkeypatch: pytest.MonkeyPatch) -> list[FakeTestbed]:
    """The testbeds that judges make."""
    made: list[FakeTestbed] = []

    def one(*_given: Any, **_more: Any) -> FakeTestbed:
        here = threading.current_thread() is threading.main_thread()
        assert here or len(made) >= 2, "the first testbed of each judge: what it asks of the machine is tried by forks"
        made.append(FakeTestbed(solved))
        return made[-1]

    monkeypatch.setattr(distsim.testbed, "Testbed", one)
    return made


def check_of(name: str, judge: Callable[[Any], object]) -> Check:
    def function(testbed: Any) -> Finding:
        return Finding.of(observed=judge(testbed), expected="", passed=True)

    return Check(name, 1.0, "Look.", function)


@contextmanager
def ahead(checks: list[Check], judges: int = 2) -> Iterator[JudgesAhead]:
    working = JudgesAhead([Judge(Path(), seed=7, server=None) for _ in range(judges)], checks)
    try:
        yield working
    finally:
        working.close()


@pytest.mark.usefixtures("testbeds")
def test_two_checks_are_judged_at_once_and_ahead_of_the_notebook() -> None:
    both, third = threading.Barrier(2), threading.Event()
    checks = [
        check_of("first", lambda _: both.wait(PATIENCE_SECONDS)),
        check_of("second", lambda _: both.wait(PATIENCE_SECONDS)),
        check_of("third", lambda _: third.set()),
    ]
    with ahead(checks) as judges:
        assert judges.judged(checks[0]).full
        assert third.wait(PATIENCE_SECONDS), "nobody has asked for it yet"
        assert judges.judged(checks[1]).full


def test_each_judge_has_one_testbed_at_a_time_and_all_are_closed(testbeds: list[FakeTestbed]) -> None:
    both = threading.Barrier(2)
    used: list[int] = []

    def beside_another(testbed: object) -> str:
        used.append(id(testbed))
        both.wait(PATIENCE_SECONDS)
        alone = used.count(id(testbed)) == 1
        both.wait(PATIENCE_SECONDS)
        used.remove(id(testbed))
        return "alone" if alone else "shared"

    checks = [check_of(f"check_{number}", beside_another) for number in range(8)]
    with ahead(checks) as judges:
        assert {judges.judged(check).observed for check in checks} == {"alone"}
    assert len(testbeds) == 2
    assert all(testbed.closed for testbed in testbeds)


def test_ranks_that_cannot_be_started_are_told_for_their_check_alone_and_tried_again(
    testbeds: list[FakeTestbed],
) -> None:
    refusals = ["busy", "no ranks here"]

    def refuses(_testbed: object) -> str:
        if refusals:
            raise RunError(refusals.pop(0))
        return "fine"

    checks = [check_of("refused", refuses), check_of("judged", lambda _: "fine")]
    with ahead(checks) as judges:
        assert judges.judged(checks[1]).observed == "fine"
        with pytest.raises(RunError, match="no ranks here"):
            judges.judged(checks[0])
        assert judges.judged(checks[0]).observed == "fine"
    assert all(testbed.closed for testbed in testbeds)


@pytest.mark.usefixtures("testbeds")
def test_checks_that_nobody_has_begun_are_left_when_the_judges_close() -> None:
    begun: list[str] = []
    hold = threading.Event()

    def one(name: str) -> Check:
        def judge(_testbed: object) -> None:
            begun.append(name)
            hold.wait(PATIENCE_SECONDS)

        return check_of(name, judge)

    checks = [check_of("quick", lambda _: ""), *(one(f"slow_{number}") for number in range(6))]
    with ahead(checks) as judges:
        judges.judged(checks[0])
        threading.Timer(0.2, hold.set).start()
    assert len(begun) <= 3, "two at work, and one more if its judge was free before the others were cancelled"


@pytest.mark.real
def test_judges_ahead_find_what_one_judge_finds_on_real_ranks(tmp_path: Path) -> None:
    lab = Lab.at(SUM)
    for path in lab.pristine:
        shutil.copy(path, tmp_path)
    shutil.copy(SUM / "solution.py", tmp_path / "tasks.py")
    judges = [Judge(tmp_path, seed=7, server=None) for _ in range(3)]
    found = []
    for judging in (judges[0], JudgesAhead(judges[1:], lab.checks.values())):
        found.append([judging.judged(check) for check in lab.checks.values()])
        judging.close()
    assert found[0] == found[1]
    assert all(result.full for result in found[0])
