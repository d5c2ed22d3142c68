"""Staleness raises the loss, more of it more; a real asynchronous schedule of the same mean is milder."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from distsim.learning.batches import seeds
from distsim.statistics import chance_that_none_is_larger, interval
from tests.learning.experiments.staleness import DELAYS, of_asynchronous_runs, of_fixed_delays

SIGNIFICANCE = 0.01


@pytest.mark.whole
def test_each_delay_raises_the_loss_more_than_the_last(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(5, 20), first=101)
    losses = of_fixed_delays(own)
    for shorter, longer in pairwise(losses):
        assert chance_that_none_is_larger(longer, shorter) < SIGNIFICANCE
    raised = losses.mean(axis=1) / losses[0].mean()
    assert raised[1] < 1.05, "a few updates of delay cost about one percent"
    assert raised[-1] > 2.0, "31 are another matter"


@pytest.mark.whole
def test_a_real_schedule_of_the_same_mean_is_milder(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(6, 20), first=201)
    delay = DELAYS[-1]
    fresh, fixed = of_fixed_delays(own, (0, delay))
    real, staleness = of_asynchronous_runs(own, workers=delay + 1)
    assert 0.8 * delay < staleness.mean() < 1.05 * delay
    harm = (real - fresh) / (fixed - fresh)
    assert interval(harm).high < 0.5
    assert interval(real - fresh).low > 0.0, "mild, but not without harm"
    assert np.isfinite(real).all()
