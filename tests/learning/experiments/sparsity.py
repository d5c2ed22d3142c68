"""What staleness does to sparse gradients, and what the same staleness does to dense ones.

Logistic regression on made-up samples that each know a share q of the features; batches of one sample. Where the
features are evenly placed, two gradients share a part q of their entries, so late ones are hardly in each other's way
when q is small (Recht et al. 2011, Hogwild!, arXiv 1106.5730; article 001_89f59768a5196126.txt says it of very large
models). Where a few features are in most samples, as words are by Zipf's law, sparse gradients do collide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distsim.learning.delays import delayed
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.sparse import SparseLogistic

SPARSE, DENSE = SparseLogistic(density=0.01), SparseLogistic(density=0.5)
WORDS = SparseLogistic(density=0.01, zipf=1.0)
STALENESS, RATE, UPDATES = 16, 3.0, 5000
POINTS = 20  # of which the second half counts: one sample more or less moves the loss of the very end


def harm(objective: SparseLogistic, seeds: Sequence[int], staleness: int = STALENESS) -> NDArray[np.float64]:
    """By how much of itself staleness raises the loss, for each seed; 0.01 is one percent.

    >>> bool(abs(harm(SPARSE, seeds=[1000])[0]) < 0.01)
    True
    """
    fresh, stale = (np.array([_loss(objective, delay, seed) for seed in seeds]) for delay in (0, staleness))
    harms: NDArray[np.float64] = stale / fresh - 1.0
    return harms


def _loss(objective: SparseLogistic, staleness: int, seed: int) -> float:
    curve = replay(delayed([staleness] * UPDATES, seed=seed), objective, Sgd(RATE), points=POINTS)
    return float(curve.loss[-POINTS // 2 :].mean())
