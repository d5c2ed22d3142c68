"""Claims: what agrees, what does not, and that nothing slips through."""

from __future__ import annotations

import math

import numpy as np
import pytest

from distsim.accuracy.claim import Claim, all_exactly, at_most, exactly, on_average


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_no_number_agrees_with_nothing(wrong: float) -> None:
    assert not exactly("case", 1.0, wrong).holds
    assert not exactly("case", wrong, 1.0).holds
    assert not on_average("case", 1.0, [wrong, 1.0, 2.0]).holds
    assert not all_exactly("case", [1.0, 2.0], [1.0, wrong]).holds
    assert not Claim("case", 1.0, math.nan, 1.0, at_most=True).holds


def test_exact_is_relative() -> None:
    assert exactly("case", 1e6, 1e6 * (1 + 9e-10)).holds
    assert not exactly("case", 1e6, 1e6 * (1 + 2e-9)).holds
    assert not exactly("case", 1e-6, 1e-6 * (1 - 2e-9)).holds
    assert exactly("case", 0.0, 0.0).holds
    assert not exactly("case", 0.0, 1e-300).holds


def test_the_worst_of_many_is_shown() -> None:
    assert all_exactly("case", [1.0, 5.0, 100.0], [1.0, 5.1, 100.5]).expression == 5.0
    assert all_exactly("case", [0.0, 5.0], [0.1, 6.0]).expression == 0.0  # nothing at all is allowed there
    same = all_exactly("case", [0.0, 5.0, 2.0], [0.0, 5.0, 2.0])
    assert (same.expression, same.holds) == (5.0, True)


def test_a_number_too_many_is_no_agreement() -> None:
    claim = all_exactly("case", [1.0], [1.0, 2.0])
    assert (claim.expression, claim.found, claim.holds) == (1.0, 2.0, False)


def test_means_within_four_standard_errors() -> None:
    samples = np.random.default_rng(0).standard_normal(10_000)
    error = samples.std(ddof=1) / 100
    assert on_average("case", float(samples.mean() - 3.9 * error), samples).holds
    assert not on_average("case", float(samples.mean() - 4.1 * error), samples).holds
    assert on_average("case", 2.0, [2.0, 2.0, 2.0]).holds
    assert not on_average("case", 2.0, [2.1, 2.1, 2.1]).holds


def test_bounds_may_be_undercut_and_not_exceeded() -> None:
    assert at_most("case", 1.0, -5.0).holds
    assert at_most("case", 1.0, 1.0).holds
    assert not at_most("case", 1.0, 1.0 + 1e-8).holds
