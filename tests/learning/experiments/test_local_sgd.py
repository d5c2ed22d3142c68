"""A longer period costs loss after as many steps, and wins it after as many rounds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from distsim.learning.experiments.interval import interval, seeds
from distsim.learning.experiments.local_sgd import PERIODS, after_rounds, after_steps


@pytest.mark.whole
def test_after_as_many_steps_a_longer_period_is_worse(whole: Callable[[int, int], int]) -> None:
    """From 1 to 4 it costs about 0.01, which is as much as 20 seeds leave uncertain; so 1, 16 and 64."""
    periods = (PERIODS[0], *PERIODS[whole(3, 2) :])
    for shorter, longer in pairwise(after_steps(seeds(whole(3, 20), first=301), periods)):
        assert interval(longer - shorter).low > 0.0


@pytest.mark.whole
def test_after_as_many_rounds_it_is_better(whole: Callable[[int, int], int]) -> None:
    for shorter, longer in pairwise(after_rounds(seeds(whole(3, 20), first=201), PERIODS[: whole(3, 4)])):
        assert interval(shorter - longer).low > 0.0
