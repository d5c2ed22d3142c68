"""Hyperparameter search: k independent trials on N workers, one per worker, against one trial after the other.

Trials need no communication. Data parallelism makes each trial faster by its speed-up, which communication limits.
"""

from __future__ import annotations

from distsim.theory.arguments import at_least


def trials_speed_up(trials: int, workers: int) -> float:
    """Speed-up of k equal trials on N workers over one worker: k / ceil(k / N), which is N if N divides k.

    Data parallelism with a smaller speed-up takes longer.

    >>> trials_speed_up(10, workers=4), trials_speed_up(12, workers=4)
    (3.3333333333333335, 4.0)
    """
    at_least(1, trials=trials, workers=workers)
    return trials / -(-trials // workers)
