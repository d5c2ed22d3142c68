"""The same training by four ways: equal losses of each rank and each update, and equal parameters."""

from __future__ import annotations

import numpy as np
import pytest

from distsim.errors import InputError
from distsim.frameworks import WAYS, Run, trained, training

UPDATES = 50  # more than an epoch of 2 ranks has, so the order of a second epoch is compared too


def differences(one: Run, other: Run) -> tuple[float, float]:
    return float(np.abs(one.losses - other.losses).max()), float(np.abs(one.parameters - other.parameters).max())


@pytest.mark.real
@pytest.mark.more
@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.thorough)])
def test_losses_are_equal(workers: int) -> None:
    for package in ("lightning", "accelerate"):
        pytest.importorskip(package)
    bare = trained("bare", workers, UPDATES)
    assert bare.losses.shape == (workers, UPDATES)
    assert bare.losses[:, -5:].mean() < 0.9 * bare.losses[:, :5].mean()  # it learns
    assert (bare.losses[0] != bare.losses[1]).all()  # each rank has samples of its own
    for way in WAYS:
        assert max(differences(bare, trained(way, workers, UPDATES))) < 1e-6, way


@pytest.mark.real
@pytest.mark.more
def test_another_order_of_the_samples_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = trained("bare", 2, 3)
    monkeypatch.setattr(training, "RANK", "import distsim.frameworks.{way} as own\nown.SEED = 1\n" + training.RANK)
    assert min(differences(bare, trained("horovod_style", 2, 3))) > 1e-3


def test_bad_input_is_told() -> None:
    with pytest.raises(InputError, match="way"):
        trained("by_hand")
    with pytest.raises(InputError, match="workers"):
        trained("bare", workers=0)
