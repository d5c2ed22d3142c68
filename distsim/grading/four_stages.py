"""The four stages of an exercise: guess, formula, simulation and measurement. The guess comes first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from distsim.errors import InputError

if TYPE_CHECKING:
    from distsim.figures import Captioned

Values = float | list[float] | None  # of a stage: one number, a number per repeat, or no value yet


def overlay(
    guess: Values,
    formula: Values,
    simulation: Values,
    measurement: Values,
    unit: str,
    quantity: str,
    *,
    reported: bool = False,
) -> Captioned:
    """One figure of the stages that have a value; an empty list is no value. Without a guess nothing is drawn."""
    from distsim.figures import guess_formula_simulation_measurement

    stages = {"guess": guess, "formula": formula, "simulation": simulation, "measurement": measurement}
    if guess is None:
        print("Guess first: the other three are drawn then.")
        stages = {}
    given = {name: value for name, value in stages.items() if not _missing(value)}
    return guess_formula_simulation_measurement(**given, unit=unit, quantity=quantity, reported=reported)


def _missing(value: Values) -> bool:
    """Whether a stage has no value yet. A NumPy number is a value, and comparing it with a list would raise."""
    return value is None or (isinstance(value, list) and not value)


def listed(value: Values) -> list[float]:
    """The numbers of a stage.

    >>> listed(2), listed([1.0, 2.0]), listed(None)
    ([2.0], [1.0, 2.0], [])
    """
    if value is None:
        return []
    plain = value.tolist() if hasattr(value, "tolist") else value  # of NumPy
    return [float(one) for one in (plain if isinstance(plain, list | tuple) else [plain])]


def guessed(quantity: str, value: object) -> float:
    """A guess as a number. Raises InputError if the guess is not a finite number: any value may be given."""
    try:
        number = math.inf if isinstance(value, bool | bytes) else float(value)  # type: ignore[arg-type] # see below
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if not math.isfinite(number):
        raise InputError.of(f"guess of the {quantity}", value, "must be a finite number", "write one such as 80")
    return number


def asking(quantity: str, unit: str) -> str:
    """The sentence that asks for a guess."""
    return f"Your guess of the {quantity}? Write a number{f' of {unit}' if unit else ''} in this cell."
