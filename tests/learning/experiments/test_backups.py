"""A number of backups declared beforehand is best where there are stragglers, and 0 where there are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from distsim.learning.batches import seeds
from distsim.learning.experiments.backups import CALM, DECLARED, EVEN, STRAGGLERS, WORKERS, seconds_to_target
from distsim.statistics import interval

HALF = WORKERS // 2


@pytest.mark.whole
def test_with_stragglers_the_declared_number_beats_both_ends(whole: Callable[[int, int], int]) -> None:
    assert 0 < DECLARED < HALF
    none, declared, half = seconds_to_target(STRAGGLERS, [0, DECLARED, HALF], seeds(whole(18, 20), first=101))
    assert np.isfinite([none, declared, half]).all()
    assert interval(none - declared).low > 0.0
    assert interval(half - declared).low > 0.0


@pytest.mark.whole
def test_without_stragglers_none_is_best(whole: Callable[[int, int], int]) -> None:
    none, declared, half = seconds_to_target(EVEN, [0, DECLARED, HALF], seeds(whole(5, 20), first=201))
    assert interval(half - none).low > 0.0
    if len(none) >= 20:  # a fifth of the time: too little for few seeds
        assert interval(declared - none).low > 0.0


@pytest.mark.whole
@pytest.mark.thorough
def test_at_a_low_rate_more_always_look_better(whole: Callable[[int, int], int]) -> None:
    times = seconds_to_target(CALM, [0, DECLARED, HALF], seeds(whole(3, 20), first=301))
    assert interval(times[0] - times[1]).low > 0.0
    assert interval(times[1] - times[2]).low > 0.0
