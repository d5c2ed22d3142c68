"""What is still to be written is seen in the text of tasks.py, and nothing else is taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from distsim.grading.lab import TASKS, Lab, all_labs
from distsim.grading.stub import solution_of, stub_of
from distsim.grading.unwritten_functions import MARK, blocked, unwritten

LABS = all_labs(Path(__file__).parents[2] / "labs")
RAISE = 'raise NotImplementedError("write one: Gives 1.")'


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.key)
def test_of_a_stub_all_is_unwritten_and_of_a_solution_nothing(lab: Lab) -> None:
    stub = stub_of(lab)
    missing = unwritten(stub)
    assert len(missing) == stub.count(f'"{MARK}')
    lines = stub.splitlines()
    assert all("raise NotImplementedError(" in lines[one.line - 1] for one in missing)
    assert {one.name for one in missing} <= set(blocked(stub))
    assert unwritten(solution_of(lab)) == []
    assert blocked(solution_of(lab)) == []
    assert (lab.folder / TASKS).read_text() == stub


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (RAISE, True),
        (f"size = 4; {RAISE}", True),
        (f"if size:\n        {RAISE}", True),
        (f"return 1; {RAISE}", False),
        ('raise NotImplementedError("not for floats")', False),
        ("raise NotImplementedError", False),
        ('raise ValueError("write one: Gives 1.")', False),
    ],
)
def test_the_stubs_own_raise_counts_where_it_can_be_come_to(body: str, found: bool) -> None:
    assert [one.name for one in unwritten(f"def one(size=2):\n    {body}\n")] == ["one"] * found


def test_what_names_an_unwritten_function_is_blocked_and_what_has_the_name_for_its_own_is_not() -> None:
    text = "def three(): return two()\ndef two(): return 2 * one()\ndef own():\n    one = 1\n    return one\n"
    text += "def given(one): return one\n"
    assert blocked(f"{text}def one(): {RAISE}\n") == ["three", "two", "one"]


def test_of_a_class_its_unwritten_methods_are_told() -> None:
    text = f"class All:\n    def one(self): {RAISE.replace('one', 'All.one')}\n    def two(self): return 2\n"
    assert blocked(text) == ["All", "All.one"]


def test_what_is_no_python_is_left_to_the_run() -> None:
    assert unwritten("def one(:\n") == blocked("def one(:\n") == unwritten("\0") == []
