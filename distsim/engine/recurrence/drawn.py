"""The compute times of a whole run as one array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distsim.scenario import Scenario

Floats = NDArray[np.float64]


def drawn_seconds(scenario: Scenario) -> Floats:
    """Seconds of each step's work, shape (steps, workers)."""
    times = scenario.compute_times()
    return np.stack(
        [times.first(worker, scenario.steps)[: scenario.steps] for worker in range(scenario.cluster.workers)], axis=1
    )
