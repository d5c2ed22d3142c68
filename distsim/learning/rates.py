"""Learning rates, as functions of the update's number and of the effective batch.

The effective batch of an update is the number of samples whose gradients it averages. A rate that suits one effective
batch is scaled to another: not at all, linearly (Goyal et al. 2017, Accurate, Large Minibatch SGD, arXiv 1706.02677),
or by the square root (Krizhevsky 2014, One weird trick for parallelizing convolutional neural networks, arXiv
1404.5997).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from distsim.errors import InputError

Rate = Callable[[int], float]  # of the update's number, which counts from 0
Scaling = Literal["constant", "linear", "square_root"]


def effective_batch(workers: int, batch: int, backups: int = 0, accumulate: int = 1) -> int:
    """B = N x b: the samples of one synchronous update.

    workers: N, backups included. batch: b, per worker and step. backups: gradients that an update does not wait for.
    accumulate: steps of each worker whose gradients one update averages.

    >>> effective_batch(workers=4, batch=8), effective_batch(5, 8, backups=1), effective_batch(4, 8, accumulate=2)
    (32, 32, 64)
    """
    return (workers - backups) * batch * accumulate


def constant(rate: float) -> Rate:
    """The same rate for every update.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda update: rate  # noqa: ARG005 - every one


def scaled(rate: float, batch: int, reference: int, scaling: Scaling = "linear") -> float:
    """The rate for an effective batch of `batch`, when `rate` suits an effective batch of `reference`.

    >>> scaled(0.1, batch=8192, reference=256), scaled(0.1, batch=1024, reference=256, scaling="square_root")
    (3.2, 0.2)
    """
    ratio = batch / reference
    match scaling:
        case "constant":
            return rate
        case "linear":
            return rate * ratio
        case "square_root":
            return rate * math.sqrt(ratio)
    raise InputError.of("scaling", scaling, "is no rule", "take constant, linear or square_root")


def warm_up(rate: float, updates: int, start: float = 0.0) -> Rate:
    """A rate that rises evenly from `start` to `rate`, which it reaches at update number `updates` (Goyal et al. 2017).

    >>> [warm_up(0.8, updates=4)(update) for update in range(6)]
    [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 0.8]
    """
    if updates == 0:
        return constant(rate)
    return lambda update: start + (rate - start) * min(update / updates, 1.0)
