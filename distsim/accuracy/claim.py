"""A claim: the value of an expression, a second value to compare, and whether both agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distsim.arrays import Floats

EXACT = 1e-9  # relative difference allowed without randomness
STANDARD_ERRORS = 4.0  # difference allowed with randomness; seeds are fixed, so every run has the same result


@dataclass(frozen=True)
class Claim:
    """One row of an accuracy table.

    case: what is compared. expression: the value of a formula or of another run. found: the value by the simulator or
    by a source. allowed: the largest difference, in the same unit. at_most: `expression` is a bound from above.

    >>> Claim("two steps", expression=2.0, found=2.1, allowed=0.05).holds
    False
    >>> Claim("two steps at most", expression=2.0, found=1.5, allowed=0.0, at_most=True).holds
    True
    """

    case: str
    expression: float
    found: float
    allowed: float
    at_most: bool = False

    @property
    def difference(self) -> float:
        """found - expression."""
        return self.found - self.expression

    @property
    def holds(self) -> bool:
        """Whether the difference is allowed; a nan or infinite difference is not."""
        if not math.isfinite(self.difference):
            return False
        return (self.difference if self.at_most else abs(self.difference)) <= self.allowed


def exactly(case: str, expression: float, found: float) -> Claim:
    """Without randomness both values agree to `EXACT`.

    >>> exactly("a third", expression=1 / 3, found=0.333).holds
    False
    """
    return Claim(case, expression, found, EXACT * abs(expression))


def all_exactly(case: str, expression: Sequence[float] | Floats, found: Sequence[float] | Floats) -> Claim:
    """Many numbers agree to `EXACT`; the row shows the pair that differs most, or the counts if the counts differ.

    >>> all_exactly("ends", [1.0, 2.0], [1.0, 2.5])
    Claim(case='ends', expression=2.0, found=2.5, allowed=2e-09, at_most=False)
    """
    if len(expression) != len(found):
        return Claim(case, float(len(expression)), float(len(found)), 0.0)
    claims = [exactly(case, float(one), float(other)) for one, other in zip(expression, found, strict=True)]
    return max(claims, key=lambda claim: (_off(claim), abs(claim.expression)))


def _off(claim: Claim) -> float:
    """The difference of a claim in units of the allowed difference."""
    if claim.difference == 0.0:
        return 0.0
    off = abs(claim.difference) / claim.allowed if claim.allowed else math.inf
    return math.inf if math.isnan(off) else off


def on_average(case: str, expression: float, samples: Sequence[float] | Floats) -> Claim:
    """The mean of independent samples is within `STANDARD_ERRORS` of the expression.

    >>> on_average("dice", expression=3.5, samples=[1, 2, 3, 4, 5, 6] * 100).holds
    True
    """
    values = np.asarray(samples, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # infinite samples have no standard error, and their claim fails
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return Claim(case, expression, float(values.mean()), STANDARD_ERRORS * error + EXACT * abs(expression))


def at_most(case: str, bound: float, found: float) -> Claim:
    """`found` does not exceed the bound.

    >>> at_most("no slower", bound=1.0, found=1.1).holds
    False
    """
    return Claim(case, bound, found, EXACT * abs(bound), at_most=True)
