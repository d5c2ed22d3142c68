"""Sharded data parallel training, ZeRO: what a worker holds, and what its link carries in a step.

Each of N workers has a batch of its own, as in data parallel training, and keeps a part of the training's state. Stage
1 divides the numbers of the optimizer among the workers, stage 2 the gradients, too, and stage 3 also the parameters.
Stage 0 divides nothing: plain data parallel training.
Source: Rajbhandari et al. 2020, ZeRO: memory optimizations toward training trillion parameter models (arXiv
1910.02054), section 5 for memory and section 7 for communication.
"""

from __future__ import annotations

from distsim.errors import InputError
from distsim.theory.arguments import at_least

STAGES = (0, 1, 2, 3)
HALF_BYTES = 2.0  # of a number in half precision
ADAM_BYTES = 12.0  # mixed precision with Adam: a copy in single precision, and two numbers more


def sharded_state_bytes(
    parameters: float, workers: int, stage: int, parameter_bytes: float = HALF_BYTES,
    gradient_bytes: float = HALF_BYTES, optimizer_bytes: float = ADAM_BYTES,
) -> float:  # fmt: skip
    """Bytes of parameters, gradients and optimizer that each worker holds, without activations.

    The mean of all workers, where N does not divide the parameters.

    parameters: how many the model has. workers: N. parameter_bytes, gradient_bytes, optimizer_bytes: for each
    parameter; by default those of mixed precision with Adam, 16 together. Raises InputError for another stage.

    >>> [round(sharded_state_bytes(7.5e9, workers=64, stage=stage) / 1e9, 1) for stage in (0, 1, 2, 3)]
    [120.0, 31.4, 16.6, 1.9]
    """
    _check(workers, stage)
    at_least(
        0, parameters=parameters, parameter_bytes=parameter_bytes, gradient_bytes=gradient_bytes,
        optimizer_bytes=optimizer_bytes,
    )  # fmt: skip
    kinds = (optimizer_bytes, gradient_bytes, parameter_bytes)  # in the order of the stages that divide them
    return parameters * (sum(kinds[:stage]) / workers + sum(kinds[stage:]))


def sharded_link_bytes(num_bytes: float, workers: int, stage: int) -> float:
    """Bytes that each worker's link carries in each direction in one step.

    Stages 1 and 2 reduce-scatter the gradients and all-gather the new parameters: as much as the all-reduce of stage 0,
    2 (N - 1) / N n. Stage 3 gathers the parameters twice, for forward and for backward, and reduce-scatters the
    gradients: 3 (N - 1) / N n.

    num_bytes: n, of the parameters; the gradients have as many. workers: N. Raises InputError for another stage.

    >>> [sharded_link_bytes(4e9, workers=4, stage=stage) / 1e9 for stage in (0, 1, 2, 3)]
    [6.0, 6.0, 6.0, 9.0]
    """
    _check(workers, stage)
    at_least(0, num_bytes=num_bytes)
    return (3 if stage == 3 else 2) * (workers - 1) / workers * num_bytes


def sharded_step_seconds(
    units: int, forward_seconds: float, backward_seconds: float, gather_seconds: float, scatter_seconds: float,
    stage: int, prefetch: int = 1,
) -> float:  # fmt: skip
    """Seconds of one step of stages 1 to 3 where all workers are alike, and all U units, too.

    Collectives follow one another, and each worker has one unit of parameters under way beside the one that it computes
    (prefetch = 1) or none (0). With one, f and b of forward and backward and g and r of gather and reduce-scatter, all
    of one unit, forward takes g + (U - 1) max(g, f) + f. Backward takes b + (U - 1) max(b, r) + r where the parameters
    are still there. At stage 3 a gather comes with each reduce-scatter:
    g + max(g, b) + (U - 2) max(b, g + r) + max(b, r) + r, for U > 1.

    units: U. forward_seconds, backward_seconds, gather_seconds, scatter_seconds: of one unit. Raises InputError for
    stage 0, which all-reduces, and for another prefetch.

    >>> sharded_step_seconds(units=4, forward_seconds=1.0, backward_seconds=2.0, gather_seconds=0.5,
    ...                      scatter_seconds=0.5, stage=3)
    13.5
    """
    at_least(1, units=units)
    at_least(
        0, forward_seconds=forward_seconds, backward_seconds=backward_seconds, gather_seconds=gather_seconds,
        scatter_seconds=scatter_seconds,
    )  # fmt: skip
    if type(stage) is not int or stage not in STAGES[1:]:
        raise InputError.of("stage", stage, "is no stage of sharded training", "take 1, 2 or 3")
    if prefetch not in (0, 1):
        raise InputError.of("prefetch", prefetch, "has no closed form", "take 0 or 1, or simulate")
    f, b, g, r = forward_seconds, backward_seconds, gather_seconds, scatter_seconds
    forward = units * (g + f) if prefetch == 0 else g + (units - 1) * max(g, f) + f
    if stage < 3:
        return forward + b + (units - 1) * max(b, r) + r
    if prefetch == 0 or units == 1:
        return forward + units * (g + b + r)
    return forward + g + max(g, b) + (units - 2) * max(b, g + r) + max(b, r) + r


def _check(workers: int, stage: int) -> None:
    at_least(1, workers=workers)
    if type(stage) is not int or stage not in STAGES:
        raise InputError.of("stage", stage, "is no stage of sharded training", "take 0, 1, 2 or 3")
