"""Staleness does nothing to evenly sparse gradients, and harm to dense ones and to those of frequent words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from distsim.learning.batches import seeds
from distsim.statistics import interval
from distsim.theory.staleness import collision_share
from tests.learning.experiments.sparsity import DENSE, SPARSE, WORDS, harm


@pytest.mark.whole
def test_evenly_sparse_gradients_bear_staleness_and_dense_ones_do_not(whole: Callable[[int, int], int]) -> None:
    own = seeds(whole(4, 20), first=101)
    sparse, dense = interval(harm(SPARSE, own)), interval(harm(DENSE, own))
    assert -0.01 < sparse.low < sparse.high < 0.01
    assert dense.low > 0.2
    assert collision_share(SPARSE.density, 16) < 0.15 < 0.99 < collision_share(DENSE.density, 16)


@pytest.mark.whole
def test_sparse_gradients_of_frequent_words_collide(whole: Callable[[int, int], int]) -> None:
    assert interval(harm(WORDS, seeds(whole(6, 20), first=201))).low > 0.01
