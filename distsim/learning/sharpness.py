"""How sharp the valley is in which training has ended: the steepest curvature of the loss there."""

from __future__ import annotations

import numpy as np

from distsim.learning.objective import Numbers, Objective
from distsim.random_streams import Purpose, stream

ROUNDS = 30
REACH = 1e-3  # of the finite difference, relative to the parameters' norm


def sharpness(objective: Objective, parameters: Numbers, rounds: int = ROUNDS) -> float:
    """The Hessian's eigenvalue of the largest size, of the loss over all samples.

    Found by power iteration on differences of gradients. Keskar et al. 2017 (arXiv 1609.04836) bound it by the loss's
    rise in a small box; plain SGD cannot stay where it is above 2 / rate.

    >>> from distsim.learning.quadratic import Quadratic
    >>> round(sharpness(Quadratic(steepest=3.0), Quadratic().start(0)), 3)
    3.0
    """
    direction = stream(0, Purpose.DATA, 0).standard_normal(len(parameters))
    step = REACH * max(float(np.linalg.norm(parameters)), 1.0)
    curvature = 0.0
    for _ in range(rounds):
        direction /= np.linalg.norm(direction)
        ahead, behind = (parameters + (sign * step * direction).astype(parameters.dtype) for sign in (1.0, -1.0))
        bent = np.subtract(objective.gradient(ahead)[1], objective.gradient(behind)[1], dtype=np.float64) / (2.0 * step)
        curvature = float(direction @ bent)
        if not bent.any():
            return 0.0
        direction = bent
    return curvature
