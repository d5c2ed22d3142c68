"""What a lab's notebook calls."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import distsim.testbed
from distsim.errors import InputError, RunError
from distsim.grading import Notebook
from distsim.grading import real as real_module
from distsim.grading.lab import Lab
from distsim.grading.variables import RESULTS_VARIABLE, SEED_VARIABLE
from tests.grading.conftest import FakeRun, FakeTestbed, solved

Answering = Callable[[Callable[..., FakeRun]], FakeTestbed]


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    """Every testbed that is made is this one."""

    def install(answer: Callable[..., FakeRun]) -> FakeTestbed:
        made = FakeTestbed(answer)
        monkeypatch.setattr(distsim.testbed, "Testbed", lambda *_given, **_more: made)
        return made

    return install


@pytest.fixture
def notebook(lab: Lab) -> Notebook:
    return Notebook("90_sum", lab.folder)


def test_full_marks_take_one_line(notebook: Notebook, answering: Answering, capsys: pytest.CaptureFixture[str]) -> None:
    answering(solved)
    points = notebook.check("every_rank_has_the_sum")
    assert (points, points.lines) == (3.0, "every_rank_has_the_sum: 3 of 3 points")
    assert capsys.readouterr() == ("", ""), "what is printed would stand above the card, once more"


def test_lost_points_come_with_reasons(notebook: Notebook, answering: Answering) -> None:
    answering(lambda *_: FakeRun([{"counts": [2, 3, 5]}]))
    points = notebook.check("the_counter_counts")
    assert points == 1.0
    assert points.lines.splitlines() == [
        "the_counter_counts: 1 of 2 points",
        "  observed: [2, 3, 5]",
        "  expected: [2, 5, 10]",
        "  hint:     Keep the count between the calls.",
    ]
    assert repr(notebook.total()) == "1 of 5 points"


def failing(fault: str) -> Callable[..., FakeRun]:
    """Ranks that cannot import tasks.py; each time another rank says so."""
    ranks = iter(range(100))
    return lambda *_: FakeRun([], f"rank {next(ranks)}: tasks.py cannot be imported: {fault}")


def test_a_file_that_cannot_be_imported_is_told_in_one_card(notebook: Notebook, answering: Answering, lab: Lab) -> None:
    (lab.folder / "tasks.py").write_text("import torch\n\n\ndef total(:\n    pass <&>\n")
    made = answering(failing("SyntaxError: invalid syntax (tasks.py:4)"))
    first, second = (notebook.check(name) for name in ("every_rank_has_the_sum", "the_counter_counts"))
    assert first == second == 0.0
    assert "SyntaxError: invalid syntax (tasks.py:4)" in first._repr_html_()
    assert "line 4: def total(:" in first._repr_html_()
    assert "SyntaxError" not in second._repr_html_() + second.lines
    assert "The card of <b>every rank has the sum</b> says why" in second._repr_html_()
    again = notebook.check("every_rank_has_the_sum")
    assert "SyntaxError" in again._repr_html_(), "the check that told it tells it again"
    made.answer = failing("ModuleNotFoundError: No module named 'troch' (tasks.py:1 in <module>)")
    other = notebook.check("the_counter_counts")
    assert "No module named &#x27;troch&#x27;" in other._repr_html_(), "another fault is told, too"
    assert "line 1: import torch" in other._repr_html_()
    made.answer = solved
    assert notebook.check("the_counter_counts") == 2.0


def test_a_fault_that_was_mended_and_made_again_is_told_again(
    notebook: Notebook, answering: Answering, lab: Lab
) -> None:
    """The card that told it the first time shows points by now."""
    (lab.folder / "tasks.py").write_text("def total(:\n")
    made = answering(failing("SyntaxError: invalid syntax (tasks.py:1)"))
    notebook.check("every_rank_has_the_sum")
    made.answer = solved
    assert notebook.check("every_rank_has_the_sum") == 3.0
    made.answer = failing("SyntaxError: invalid syntax (tasks.py:1)")
    other = notebook.check("the_counter_counts")
    assert "SyntaxError: invalid syntax (tasks.py:1)" in other._repr_html_()
    assert "says why" not in other._repr_html_()


def test_results_malformed_by_a_student_cost_points_and_nothing_else(notebook: Notebook, answering: Answering) -> None:
    answering(lambda *_: FakeRun([None, {"values": "x"}, 7]))
    assert notebook.check("every_rank_has_the_sum") == 0.0
    assert notebook.check("the_counter_counts") == 0.0


def test_a_name_that_is_no_check(notebook: Notebook) -> None:
    with pytest.raises(InputError, match="take one of every_rank_has_the_sum, the_counter_counts"):
        notebook.check("sum")


def test_the_processes_end_with_the_notebook(notebook: Notebook, answering: Answering) -> None:
    made = answering(solved)
    notebook.check("the_counter_counts")
    notebook.close()
    assert made.closed


def test_results_go_into_the_file_that_ranks_never_hear_of(
    lab: Lab, answering: Answering, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = []

    def answer(function: str, arguments: list[dict[str, Any]]) -> FakeRun:
        seen.append(os.environ.get(RESULTS_VARIABLE))
        return solved(function, arguments)

    answering(answer)
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results.json"))
    notebook = Notebook("90_sum", lab.folder)
    notebook.check("the_counter_counts")
    notebook.check("every_rank_has_the_sum")
    noted = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [(one["check"], one["points"]) for one in noted] == [
        ("the_counter_counts", 2.0), ("every_rank_has_the_sum", 3.0),
    ]  # fmt: skip
    assert seen == [None, None]


def test_checks_draw_from_the_seed_of_the_grading_or_else_of_the_lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    def made(*_given: Any, seed: int, **_more: Any) -> FakeTestbed:
        seeds.append(seed)
        return FakeTestbed(solved)

    monkeypatch.setattr(distsim.testbed, "Testbed", made)
    for given in ("12", ""):
        monkeypatch.setenv(SEED_VARIABLE, given)
        Notebook("90_sum", lab.folder).check("every_rank_has_the_sum")
        assert SEED_VARIABLE not in os.environ, "a rank may read the environment"
    assert seeds == [12, lab.seed()]


def test_a_check_that_cannot_be_run_is_tried_again_and_then_told_beside_the_results(
    lab: Lab, answering: Answering, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusals = ["busy", "busy", "no ranks here", "busy"]

    def refuse_at_times(*given: Any) -> FakeRun:
        if refusals:
            raise RunError(refusals.pop(0))
        return solved(*given)

    def noted() -> dict[str, Any]:
        return dict(json.loads((tmp_path / "results.json").read_text()))

    answering(refuse_at_times)
    monkeypatch.setattr("distsim.grading.notebook.JUDGES_AHEAD", 1)  # so that the refusals come in order
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results.json"))
    notebook = Notebook("90_sum", lab.folder)
    with pytest.raises(RunError):
        notebook.check("the_counter_counts")
    assert noted() == {"results": [], "refused": "busy"}
    with pytest.raises(RunError, match="busy"):
        notebook.check("every_rank_has_the_sum")
    assert notebook.check("every_rank_has_the_sum") > 0
    assert noted()["refused"] == "busy", "the first check is still without a result"
    assert [one["check"] for one in noted()["results"]] == ["every_rank_has_the_sum"]
    assert notebook.check("the_counter_counts") > 0
    assert "refused" not in noted()


def test_the_first_guess_counts(notebook: Notebook, lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert notebook.guess("time", None, unit="ms") is None
    assert notebook.guess("time", ..., unit="ms") is None
    assert "Write a number of ms" in capsys.readouterr().out
    assert notebook.guess("time", 80, unit="ms") == 80.0
    assert json.loads((lab.folder / "guesses.json").read_text()) == {"time": 80.0}
    assert notebook.guess("time", 93.2, unit="ms") == 80.0
    assert "the first one counts" in capsys.readouterr().out
    assert Notebook("90_sum", lab.folder).guess("time", None) == 80.0


@pytest.mark.parametrize("value", ["much", float("nan"), float("inf"), 10**400, [1]])
def test_a_guess_is_a_number(notebook: Notebook, lab: Lab, value: Any) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        notebook.guess("time", value)
    assert not (lab.folder / "guesses.json").exists()


def test_nothing_is_drawn_before_there_is_a_guess(notebook: Notebook) -> None:
    others: dict[str, Any] = {"formula": 2.0, "simulation": 3.0, "measurement": [4.0, 5.0]}
    hidden = notebook.overlay(guess=None, **others)
    assert [row["time (ms)"] for row in notebook.overlay(guess=1.0, quantity="time", **others).table] == [1, 2, 3, 4.5]
    assert {row["step time (ms)"] for row in hidden.table} == {None}


def test_a_run_that_failed_is_told_and_not_yet_drawn(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_given: object, **_more: object) -> list[Any]:
        raise RunError("rank 1 raised NotImplementedError")

    monkeypatch.setattr(real_module, "run", fail)
    assert notebook.run() == []
    assert "rank 1 raised" in capsys.readouterr().out
    drawn = notebook.overlay(guess=1.0, measurement=notebook.run())
    assert drawn.table[-1]["step time (ms)"] is None


def test_a_run_of_what_is_no_python_does_not_start(
    notebook: Notebook, answering: Answering, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab.folder / "tasks.py").write_text("def total(:\n")
    assert notebook.run() == []
    assert capsys.readouterr().out == "not run: tasks.py, line 1: invalid syntax\n"
    answering(failing("SyntaxError: invalid syntax (tasks.py:1)"))
    notebook.check("the_counter_counts")
    assert notebook.run() == []
    assert capsys.readouterr().out == (
        "not run: tasks.py cannot be imported; the card of the counter counts says why\n"
    )


@pytest.mark.parametrize(
    ("text", "told"), [("\n\ndef total(:\n", "line 3: invalid syntax"), ("x = (\n", "line 1: '(' was never closed")]
)
def test_a_run_tells_a_fault_that_no_card_tells(
    notebook: Notebook, answering: Answering, lab: Lab, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    """A card told a SyntaxError, but in another line, or with another message."""
    answering(failing("SyntaxError: invalid syntax (tasks.py:1)"))
    notebook.check("the_counter_counts")
    (lab.folder / "tasks.py").write_text(text)
    assert notebook.run() == []
    assert capsys.readouterr().out == f"not run: tasks.py, {told}\n"


def test_links_that_cannot_be_emulated_are_told(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_given: object, **_more: object) -> list[Any]:
        raise InputError("no network namespaces here")

    monkeypatch.setattr(real_module, "run", refuse)
    assert notebook.run(emulate=True) == []
    assert "no network namespaces" in capsys.readouterr().out
    with pytest.raises(InputError):
        notebook.run()


def test_the_scenario_is_there(notebook: Notebook) -> None:
    assert notebook.scenario.cluster.workers == 2


def test_an_argument_that_real_does_not_have(notebook: Notebook) -> None:
    with pytest.raises(InputError, match="take one of seconds, size"):
        notebook.run(sizes=3)


def test_a_lab_without_a_real_run(notebook: Notebook, lab: Lab) -> None:
    (lab.folder / "ranks.py").write_text("")
    with pytest.raises(InputError, match=r"no real in its ranks\.py"):
        notebook.run()
