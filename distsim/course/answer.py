"""Judges a student's answer against the right answer: a number, a choice, a sequence or a function.

Each function takes the `right` answer and a table `wrong`, from a known wrong answer to the sentence that leads on from
that answer. The exercise computes both; they are never typed in. No function tells the right answer. `...` and None
mean no answer yet.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

from distsim.grading.result import UNTOUCHED

CLOSE = 1e-9  # relative: the last digits of a float do not count
THOUSANDS = tuple(1e3**power for power in (-3, -2, -1, 1, 2, 3))
HUNDREDS = (0.01, 100.0)


@dataclass(frozen=True)
class Judged:
    """The result of an answer. share: of the points, from 0 to 1; feedback: replaces the hint."""

    share: float
    observed: str
    feedback: str = ""


def number(
    answer: object,
    *,
    right: float,
    tolerance: float = 0.0,
    relative: float = CLOSE,
    unit: str = "",
    wrong: Mapping[float, str] | None = None,
) -> Judged:
    """A number, which may be off by `tolerance`, or by the share `relative` of the right number.

    unit: the unit that the text asks for. If the answer is off by a factor of 1000, or is a share where the text asks
    for %, the feedback points to the unit. If the answer was rounded to two digits, the feedback asks for three.

    >>> number(32, right=4 * 8)
    Judged(share=1.0, observed='32', feedback='')
    >>> number(8, right=4 * 8, wrong={8: "That is the batch of one worker."}).feedback
    'That is the batch of one worker.'
    >>> number(0.05, right=50.0, unit="ms").feedback
    'Look at the unit: this is asked for in ms.'
    >>> number(55, right=55.33, relative=0.005, unit="ms").feedback
    'That is rounded too far: give three digits.'
    """
    plain = _plain(answer)
    if untouched(plain):
        return Judged(0.0, UNTOUCHED)
    value = _real(plain)
    if value is None:
        cures: dict[type, str] = {str: ", without quotes", list: ", not several", tuple: ", not several"}
        return Judged(0.0, shown(plain), f"This must be a number{cures.get(type(plain), '')}.")

    def near(other: float) -> bool:
        return abs(value - other) <= max(tolerance, relative * abs(other))

    if near(right):
        return Judged(1.0, _told(value, unit))
    for known, why in (wrong or {}).items():
        if near(known):
            return Judged(0.0, _told(value, unit), why)
    factors = HUNDREDS if unit == "%" else THOUSANDS
    if unit and right and any(math.isclose(value, factor * right, rel_tol=max(relative, CLOSE)) for factor in factors):
        return Judged(0.0, _told(value, unit), f"Look at the unit: this is asked for in {unit}.")
    if relative > CLOSE and value == float(f"{right:.2g}"):
        return Judged(0.0, _told(value, unit), "That is rounded too far: give three digits.")
    return Judged(0.0, _told(value, unit))


def choice(
    answer: object, *, right: Hashable, options: Sequence[Hashable], wrong: Mapping[Any, str] | None = None
) -> Judged:
    """One of several options. Capitals and blanks in words do not count.

    Raises ValueError where `right` is not among the options.

    >>> choice(" Ring", right="ring", options=["ring", "tree"]).share
    1.0
    >>> choice("star", right="ring", options=["ring", "tree"]).feedback
    "Choose one of 'ring', 'tree'."
    """
    if right not in options:
        raise ValueError(f"the right answer {right!r} is none of the options")
    plain = _plain(answer)
    if untouched(plain):
        return Judged(0.0, UNTOUCHED)
    for option in options:
        if _same(plain, option):
            feedback = next((why for known, why in (wrong or {}).items() if _same(known, option)), "")
            return Judged(float(option == right), shown(plain), "" if option == right else feedback)
    return Judged(0.0, shown(plain), f"Choose one of {', '.join(map(repr, options))}.")


def sequence(
    answer: object,
    *,
    right: Sequence[object],
    ordered: bool = True,
    relative: float = CLOSE,
    wrong: Mapping[tuple[Any, ...], str] | None = None,
) -> Judged:
    """Several words or numbers, as a list, a tuple or an array. ordered: whether their order counts.

    >>> sequence(["push", "update", "pull"], right=("push", "update", "pull")).share
    1.0
    >>> sequence([2, 1], right=[1, 2]).share, sequence([2, 1], right=[1, 2], ordered=False).share
    (0.0, 1.0)
    """
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(plain, set | frozenset):
        plain = sorted(plain, key=str)
    if untouched(plain):
        return Judged(0.0, UNTOUCHED)
    if not isinstance(plain, list | tuple):
        return Judged(0.0, shown(plain), "This must be a list: [first, second].")
    if not plain or any(untouched(one) for one in plain):
        return Judged(0.0, UNTOUCHED)

    def equal(other: Sequence[object]) -> bool:
        if len(plain) != len(other):
            return False
        if ordered:
            return all(_same(one, two, relative) for one, two in zip(plain, other, strict=True))
        left = list(other)
        for one in plain:
            found = next((place for place, two in enumerate(left) if _same(one, two, relative)), None)
            if found is None:
                return False
            left.pop(found)
        return True

    if equal(right):
        return Judged(1.0, shown(plain))
    return Judged(0.0, shown(plain), next((why for known, why in (wrong or {}).items() if equal(known)), ""))


def function(
    answer: object,
    *,
    right: Callable[..., float],
    inputs: Sequence[tuple[Any, ...]],
    relative: float = CLOSE,
    wrong: Mapping[Callable[..., float], str] | None = None,
) -> Judged:
    """A student's function, tried on inputs: its results must be the numbers that `right` gives.

    `observed` names the first input with another result. A function of `wrong` must agree on all inputs.

    >>> function(lambda n, b: n + b, right=lambda n, b: n * b, inputs=[(2, 2), (4, 8)]).observed
    'on (4, 8) it gave 12'
    """
    if untouched(answer):
        return Judged(0.0, UNTOUCHED)
    if not callable(answer):
        return Judged(0.0, shown(answer), "This must be a function: leave its `def` line as it is.")
    got: list[float] = []
    missed = ""
    for given in inputs:
        try:
            result = _plain(answer(*copy.deepcopy(given)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a student's function may raise anything
            return Judged(0.0, f"on {_given(given)} it raised {_shown_error(error)}")
        if untouched(result):
            return Judged(0.0, UNTOUCHED if not got else f"on {_given(given)} it gave {result}")
        value = _real(result)
        if value is None:
            return Judged(0.0, f"on {_given(given)} it gave {shown(result)}", "It must give a number.")
        got.append(value)
        if not missed and not math.isclose(value, right(*given), rel_tol=relative, abs_tol=relative):
            missed = f"on {_given(given)} it gave {_told(value)}"
    if not missed:
        return Judged(1.0, f"right on all of {len(inputs)} inputs")
    for known, why in (wrong or {}).items():
        values = [known(*given) for given in inputs]
        if all(math.isclose(*pair, rel_tol=relative, abs_tol=relative) for pair in zip(got, values, strict=True)):
            return Judged(0.0, missed, why)
    return Judged(0.0, missed)


def untouched(answer: object) -> bool:
    """Whether there is no answer yet."""
    return answer is ... or answer is None


def _plain(answer: object) -> object:
    """A scalar of numpy or torch as a Python number."""
    item = getattr(answer, "item", None)
    if not callable(item):
        return answer
    try:
        return item()
    except Exception:  # noqa: BLE001 - an array of several values, or an object with an `item` of its own
        return answer


def _real(answer: object) -> float | None:
    """The answer as a finite number, or None."""
    if isinstance(answer, bool) or not isinstance(answer, Real | Decimal):
        return None
    try:
        value = float(answer)
    except (OverflowError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _same(one: object, two: object, relative: float = CLOSE) -> bool:
    one, two = _plain(one), _plain(two)
    if isinstance(one, str) and isinstance(two, str):
        return _words(one) == _words(two)
    first, second = _real(one), _real(two)
    if first is not None and second is not None:
        return math.isclose(first, second, rel_tol=relative, abs_tol=1e-12)
    return type(one) is type(two) and bool(one == two)


def _words(text: str) -> str:
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split())


def _told(value: float, unit: str = "") -> str:
    return f"{value:.6g} {unit}".rstrip()


def _given(arguments: tuple[Any, ...]) -> str:
    return f"({', '.join(map(shown, arguments))})"


def shown(answer: object) -> str:
    """The answer as a feedback quotes it."""
    try:
        text = repr(answer)
    except Exception:  # noqa: BLE001 - whatever a student's object does when it is written down
        text = f"something of the class {type(answer).__name__}"
    return text if len(text) <= 200 else f"{text[:100]} ... {text[-90:]}"


def _shown_error(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error that cannot be told either
        return type(error).__name__
