"""Large batches: worse after the same epochs, better at a scaled rate up to a point, alike after the same updates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.learning.batches import seeds
from distsim.learning.experiments.batch_size import BEST_RATES, updates_to_target
from distsim.learning.torch_model import TorchModel
from distsim.statistics import interval
from distsim.theory.noise_scale import best_rate, fitted
from tests.learning.experiments.batch_size import (
    EPOCHS,
    LARGE,
    SMALL,
    Model,
    accuracies,
    recovered,
    sharpnesses,
    updates_per_epoch,
)

EVERY = LARGE[-1]
SAMPLES = TorchModel.of("mlp").samples


@pytest.mark.whole
@pytest.mark.parametrize("model", ["mlp", pytest.param("cnn", marks=pytest.mark.thorough)])
def test_at_a_constant_rate_a_large_batch_ends_worse(model: Model, whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(2, 10), first=101)
    small, large = accuracies(model, SMALL, own), accuracies(model, 512, own)
    assert small.min() > 0.85
    assert interval(small - large).low > 0.3


@pytest.mark.whole
def test_linear_scaling_closes_the_gap_up_to_some_batch_and_fails_beyond(whole: Callable[[int, int], int]) -> None:
    up_to, beyond = recovered("mlp", [whole(128, 256), EVERY], seeds(whole(3, 10), first=201))
    assert interval(up_to).low > 0.5
    assert interval(beyond).high < 0.5


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_it_fails_earlier_for_the_cnn() -> None:
    up_to, beyond = recovered("cnn", [128, 512], seeds(10, first=501))
    assert interval(up_to).low > 0.5
    assert interval(beyond).high < 0.5


@pytest.mark.whole
def test_after_as_many_updates_the_gap_is_gone(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(2, 10), first=301)
    updates = EPOCHS * updates_per_epoch(SAMPLES, SMALL)
    small, large = accuracies("mlp", SMALL, own), accuracies("mlp", whole(128, 512), own, updates=updates)
    assert (abs(small - large) < 0.05).all()
    assert interval(small - large).low < 0.01


@pytest.mark.whole
@pytest.mark.thorough
def test_sharpness_says_how_far_training_has_come(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(2, 10), first=401)
    updates = EPOCHS * updates_per_epoch(SAMPLES, SMALL)
    small, large = sharpnesses("mlp", SMALL, own), sharpnesses("mlp", 512, own)
    after_as_many_updates = sharpnesses("mlp", whole(128, 512), own, updates)
    assert (abs(large) < 0.7 * small).all(), "it has hardly left the start, which is flat"
    assert (abs(after_as_many_updates / small - 1.0) < 0.3).all(), "both stand in valleys alike"


@pytest.mark.whole
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_no_other_rate_needs_fewer_updates_to_the_target(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(2, 10))
    for batch, rate in BEST_RATES.items():
        best = np.array(updates_to_target("mlp", batch, rate, own))
        for other in (rate / 2, rate * 2):
            try:
                found = np.array(updates_to_target("mlp", batch, other, own))
            except InputError:
                continue
            assert found.mean() > best.mean(), f"{batch} samples at {other}"


@pytest.mark.whole
def test_a_larger_batch_saves_updates_up_to_the_noise_scale(whole: Callable[[int, int], int]) -> None:
    """The curve of the noise scale, and the rates that follow from it, within the factor 2 of the rates tried."""
    own = seeds(whole(3, 10))
    means = {batch: np.mean(updates_to_target("mlp", batch, rate, own)) for batch, rate in BEST_RATES.items()}
    least, scale = fitted(list(means), list(means.values()))
    assert 30 < least < 50
    assert 8 < scale < 30
    for batch, rate in BEST_RATES.items():
        assert 0.5 < rate / best_rate(BEST_RATES[EVERY], scale, batch) < 2.0


def test_a_rate_that_never_gets_there_is_named() -> None:
    with pytest.raises(InputError, match=r"rate = 2.56: leads seed 1000 to no loss of 0.3 in 100 updates"):
        updates_to_target("mlp", 512, 2.56, [1000], most=100)
