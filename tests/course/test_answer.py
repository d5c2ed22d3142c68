"""Whatever stands in an answer, it is judged and nothing is raised."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from distsim.course import Judged, choice, exercise, function, number, sequence
from distsim.course.answer import UNTOUCHED


class Hostile:
    """Raises at everything that is asked of it."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("no")

    __repr__ = __str__ = __eq__ = __float__ = __len__ = __iter__ = __bool__ = _raise
    __hash__ = object.__hash__
    item = tolist = _raise


ANYTHING = [
    float("nan"), float("inf"), -float("inf"), 10**400, 1 + 2j, True, "8", "", b"8", [], [8], (8, 9), {}, {8: 9}, set(),
    object(), int, np.array([1.0, 2.0]), np.array([]), np.float32("nan"), np.datetime64("NaT"), Hostile(), Hostile,
    lambda: 1 / 0, lambda *_: None, lambda *_: Hostile(), range(3), Decimal("sNaN"), [Hostile()], [...], [None, 1],
]  # fmt: skip


@pytest.mark.parametrize("answer", ANYTHING, ids=lambda answer: type(answer).__name__)
def test_nothing_raises_and_nothing_wrong_gets_points(answer: object) -> None:
    made = [
        exercise(points=2, hint="h")(judge)
        for judge in (
            lambda given: number(given, right=7.0, unit="ms", wrong={3: "w"}),
            lambda given: choice(given, right="ring", options=["ring", "tree"]),
            lambda given: sequence(given, right=["a", 2]),
            lambda given: function(given, right=lambda n: 2.0 * n, inputs=[(1,), (2,)]),
        )
    ]
    for one in made:
        result = one.judged(answer)
        assert (result.points, result.full) == (0.0, False)
        assert result.hint
        assert "0 of 2 points" in result.text()


@pytest.mark.parametrize("answer", [..., None])
def test_an_untouched_answer_gets_the_hint(answer: object) -> None:
    assert number(answer, right=1) == choice(answer, right=1, options=[1]) == Judged(0.0, UNTOUCHED)
    assert sequence([answer, answer], right=[1, 2]) == Judged(0.0, UNTOUCHED)
    assert function(lambda _: answer, right=lambda n: n, inputs=[(1,)]) == Judged(0.0, UNTOUCHED)


@pytest.mark.parametrize(
    "answer", [32, 32.0, np.int64(32), np.float32(32), np.array(32.0), np.array([32]), Fraction(64, 2), Decimal(32)]
)
def test_numbers_of_every_kind(answer: object) -> None:
    assert number(answer, right=32).share == 1.0


def test_a_tensor_is_a_number() -> None:
    torch = pytest.importorskip("torch")
    assert number(torch.tensor(32.0, requires_grad=True), right=32).share == 1.0


def test_tolerances_of_numbers() -> None:
    assert [number(value, right=100.0, tolerance=1.0).share for value in (98.9, 99.1, 100.9, 101.1)] == [0, 1, 1, 0]
    assert [number(value, right=100.0, relative=0.1).share for value in (89.0, 91.0, 109.0, 111.0)] == [0, 1, 1, 0]
    assert [number(value, right=100.0).share for value in (100.0 + 1e-8, 100.0 + 1e-6)] == [1, 0]
    assert number(0, right=0).share == 1.0


def test_a_listed_wrong_number_has_its_feedback_and_the_right_one_comes_first() -> None:
    wrong = {8: "one worker", 32.1: "never"}
    assert number(8, right=32, wrong=wrong).feedback == "one worker"
    assert number(9, right=32, wrong=wrong).feedback == ""
    assert number(32.05, right=32, tolerance=0.1, wrong=wrong) == Judged(1.0, "32.05")


@pytest.mark.parametrize(("answer", "unit"), [(0.05, "ms"), (50_000, "ms"), (0.5, "%")])
def test_a_wrong_unit_is_told(answer: float, unit: str) -> None:
    assert number(answer, right=50.0, relative=0.01, unit=unit).feedback.startswith("Look at the unit")
    assert number(answer, right=50.0).feedback == ""
    assert number(answer, right=50.0, unit=unit, wrong={answer: "listed"}).feedback == "listed"


def test_text_is_no_number() -> None:
    assert number("8", right=8) == Judged(0.0, "'8'", "This must be a number, without quotes.")
    assert number(True, right=1).feedback == "This must be a number."


def test_choices() -> None:
    options, wrong = ["parameter server", "ring", True], {"ring": "no"}
    judged = {
        given: choice(given, right="parameter server", options=options, wrong=wrong)
        for given in ("Parameter-Server", " parameter_server ", "RING", "star", True, 1)
    }
    assert [one.share for one in judged.values()] == [1.0, 1.0, 0.0, 0.0, 0.0]  # True and 1 are one key
    assert judged["RING"].feedback == "no"
    assert judged["star"].feedback == "Choose one of 'parameter server', 'ring', True."
    with pytest.raises(ValueError, match="none of the options"):
        choice("a", right="a", options=["b"])


def test_sequences() -> None:
    wrong = {("b", "a"): "the other way round"}
    assert sequence(("A", "b"), right=["a", "b"], wrong=wrong).share == 1.0
    assert sequence(["b", "a"], right=["a", "b"], wrong=wrong).feedback == "the other way round"
    assert sequence({"b", "a"}, right=["a", "b"], ordered=False).share == 1.0
    assert sequence(["a", "a"], right=["a", "b"], ordered=False).share == 0.0
    assert sequence(np.array([1, 2]), right=[1.0, 2.0]).share == 1.0
    assert sequence([1, 2, 3], right=[1, 2]).share == 0.0
    assert sequence("ab", right=["a", "b"]).feedback.startswith("This must be a list")


def test_functions() -> None:
    def right(n: int, values: list[float]) -> float:
        return n * values.pop()

    def forgets(n: int, values: list[float]) -> float:
        return n + values.pop()

    inputs = [(2, [2.0]), (3, [0.5])]
    wrong = {forgets: "product, not sum"}
    assert function(right, right=lambda n, v: n * v[-1], inputs=inputs).share == 1.0
    assert inputs == [(2, [2.0]), (3, [0.5])], "a student's function changed the inputs of the next"
    judged = function(lambda n, v: n + v[-1], right=lambda n, v: n * v[-1], inputs=inputs, wrong={
        lambda n, v: n + v[-1]: "product, not sum"})  # fmt: skip
    assert judged == Judged(0.0, "on (3, [0.5]) it gave 3.5", "product, not sum")
    assert function(lambda n, _: n, right=lambda n, v: n * v[-1], inputs=inputs).feedback == ""
    assert function(lambda: 1, right=lambda n, v: n * v[-1], inputs=inputs).observed.startswith(
        "on (2, [2.0]) it raised TypeError"
    )
    assert function(exit, right=lambda n: n, inputs=[(1,)]).observed == "on (1) it raised SystemExit: 1"
    assert len(wrong) == 1
