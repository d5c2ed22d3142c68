"""A tasks.py that cannot be imported is told once, in feedback as in the notebook, from what ranks really report."""

from __future__ import annotations

from pathlib import Path

import pytest

from distsim.grading.feedback import feedback
from distsim.grading.grade import Grade
from distsim.grading.result import Result, told_once
from distsim.testbed import Testbed
from tests.grading.conftest import SUM

FAULT = "tasks.py cannot be imported: TabError: mixed (tasks.py:3)"


def test_the_feedback_says_it_once() -> None:
    results = [
        Result("sums", 0.0, 2.0, f"rank 1: {FAULT}", "6.0", hint="Add."),
        Result("counts", 0.0, 1.0, f"rank 0: {FAULT}", "7", hint="Count."),
        Result("names", 1.0, 1.0),
    ]
    assert [result.check for result in told_once(results)] == ["sums"]
    page = feedback(Grade("ada", "90_sum", "tasks.py", "", "", 7, results, []))
    assert page.count("TabError") == 1
    assert "Add." not in page


def test_a_fault_that_only_some_checks_met_names_them() -> None:
    """Such as an import that fails now and then."""
    hit, well = [Result(name, 0.0, 1.0, f"rank 0: {FAULT}") for name in ("sums", "a_b")], Result("counts", 1.0, 1.0)
    some = feedback(Grade("ada", "90_sum", "tasks.py", "", "", 7, [*hit, well], []))
    assert "## Not run: sums, a\\_b\n" in some
    assert "No check could run" not in some
    assert "## No check could run\n" in feedback(Grade("ada", "90_sum", "tasks.py", "", "", 7, hit, []))


def test_different_reasons_are_all_told() -> None:
    results = [Result(name, 0.0, 2.0, "3", "6") for name in ("sums", "counts")]
    assert told_once(results) == results


FAULTS = {
    "import torch\n\ndef total(:\n": "SyntaxError: invalid syntax (tasks.py:3)",
    "import troch\n": "ModuleNotFoundError: No module named 'troch' (tasks.py:1 in <module>)",
}


@pytest.mark.real
def test_ranks_say_that_it_was_the_import(tmp_path: Path) -> None:
    for path in SUM.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with Testbed(tmp_path) as testbed:
        for tasks, fault in FAULTS.items():
            (tmp_path / "tasks.py").write_text(tasks)
            run = testbed.run("summed", arguments=[{"values": 1}, {"values": 2}])
            assert Result("sums", 0.0, 2.0, str(run.failure)).import_fault == fault
