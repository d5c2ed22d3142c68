"""What a notebook shows of guess, formula, simulation and measurement: nothing before there is a guess."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from distsim.errors import InputError

if TYPE_CHECKING:
    from distsim.figures import Captioned

Values = float | list[float] | None  # of a stage: one number, those of repeats, or not there yet


def overlay(
    guess: Values, formula: Values, simulation: Values, measurement: Values, unit: str, quantity: str
) -> Captioned:
    """All four in one drawing; an empty list is not there yet. Without a guess nothing is shown."""
    from distsim.figures import guess_formula_simulation_measurement

    stages = {"guess": guess, "formula": formula, "simulation": simulation, "measurement": measurement}
    if guess is None:
        print("Guess first: the other three are drawn then.")
        stages = {}
    given = {name: value for name, value in stages.items() if not _missing(value)}
    return guess_formula_simulation_measurement(**given, unit=unit, quantity=quantity)


def _missing(value: Values) -> bool:
    """Whether a stage is not there yet; a number of numpy's is there, though comparing it with a list raises."""
    return value is None or (isinstance(value, list) and not value)


def guessed(quantity: str, value: object) -> float:
    """A guess as a number. Raises InputError where it is no finite one."""
    try:
        number = float(value)  # type: ignore[arg-type] # told below, whatever it is
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if not math.isfinite(number):
        raise InputError.of(f"guess of the {quantity}", value, "must be a finite number", "write one such as 80")
    return number


def asking(quantity: str, unit: str) -> str:
    """The sentence that asks for a guess."""
    return f"Your guess of the {quantity}? Write a number{f' of {unit}' if unit else ''} in this cell."
