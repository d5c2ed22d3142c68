"""Checks of the formulas' arguments. All checks refuse a nan."""

from __future__ import annotations

import numpy as np

from distsim.errors import InputError


def at_least(least: float, **values: float) -> None:
    """Raises InputError for the first value below `least`, naming the argument.

    >>> at_least(1, workers=4, steps=1)
    >>> at_least(1, workers=0)
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: workers = 0: must be at least 1. Cure: give 1 or more
    """
    for name, value in values.items():
        if not value >= least:
            raise InputError.of(name, value, f"must be at least {least:g}", f"give {least:g} or more")


def above(limit: float, **values: float) -> None:
    """Raises InputError for the first value that is not above `limit`.

    >>> above(0, mean_seconds=0.0)
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: mean_seconds = 0.0: must be above 0. Cure: give more than 0
    """
    for name, value in values.items():
        if not value > limit:
            raise InputError.of(name, value, f"must be above {limit:g}", f"give more than {limit:g}")


def shares(**values: float) -> None:
    """Raises InputError for the first value outside 0 to 1.

    >>> shares(touched=1.5)
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: touched = 1.5: must be 0 to 1. Cure: give a share of the whole
    """
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise InputError.of(name, value, "must be 0 to 1", "give a share of the whole")


def is_count(value: object) -> bool:
    """Whether `value` is a whole number of at least 1, of Python or numpy.

    >>> is_count(4), is_count(1.5), is_count(0), is_count(True)
    (True, False, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1
