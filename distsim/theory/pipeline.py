"""Pipelines: p stages of a model, m micro-batches one after the other, and the idle time of the stages.

f and b are the seconds of forward and backward of one micro-batch on one stage. Sources: Huang et al. 2019, GPipe
(arXiv 1811.06965); Harlap et al. 2018, PipeDream (arXiv 1806.03377) for 1F1B; Narayanan et al. 2021, Efficient
large-scale language model training on GPU clusters using Megatron-LM (arXiv 2104.04473), section 2.2, for all three
schedules and their bubbles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from distsim.errors import InputError
from distsim.theory.arguments import at_least


def bubble_share(stages: int, micro_batches: int, interleaved: int = 1) -> float:
    """The idle share of a step with free communication and equal stages: (p - 1) / (v m + p - 1).

    GPipe and 1F1B have the same idle share and differ in memory. With an interleaved schedule each worker holds v
    pieces of the model, and the pipeline fills v times as fast (m is a multiple of p).

    stages: p. micro_batches: m. interleaved: v.

    >>> round(bubble_share(4, micro_batches=8), 5), round(bubble_share(4, micro_batches=8, interleaved=2), 5)
    (0.27273, 0.15789)
    """
    at_least(1, stages=stages, micro_batches=micro_batches, interleaved=interleaved)
    return (stages - 1) / (interleaved * micro_batches + stages - 1)


def equal_stages_step_seconds(
    stages: int, micro_batches: int, forward_seconds: float, backward_seconds: float
) -> float:
    """A step of GPipe or 1F1B with free communication: (m + p - 1) (f + b). Model parallelism has m = 1: p (f + b).

    stages: p. micro_batches: m. forward_seconds, backward_seconds: f, b, of one micro-batch on one stage.

    >>> equal_stages_step_seconds(4, micro_batches=8, forward_seconds=1.0, backward_seconds=2.0)
    33.0
    """
    at_least(1, stages=stages, micro_batches=micro_batches)
    at_least(0, forward_seconds=forward_seconds, backward_seconds=backward_seconds)
    return (micro_batches + stages - 1) * (forward_seconds + backward_seconds)


def gpipe_step_seconds(
    forward_seconds: Sequence[float],
    backward_seconds: Sequence[float],
    micro_batches: int,
    transfer_seconds: float = 0.0,
    sends: Literal["rendezvous", "eager"] = "rendezvous",
) -> float:
    """A step of GPipe with unequal stages and messages that take time: pass(f) + pass(b), forward and backward.

        pass(x) = sum of x_s + (p - 1) c + (m - 1) max(x_1, …, x_p, c)            eager
        pass(x) = sum of x_s + (p - 1) c + (m - 1) max(x_1, x_2 + c, …, x_p + c)  rendezvous

    with the stages in the order in which a micro-batch visits them. The stages, and with eager sends the links between
    them, are machines of a flow shop with equal jobs: the first job passes all machines, and the other jobs follow at
    the rate of the slowest machine (Pinedo, Scheduling, section 6.1). With rendezvous sends a message waits until its
    target receives it, so each later stage is busy for the message's time as well.

    forward_seconds, backward_seconds: f, b of one micro-batch, by stage. micro_batches: m. transfer_seconds: c, of
    one message between neighbours; a link carries one message at a time. sends: as in a scenario.

    >>> gpipe_step_seconds([1.0, 1.0], [2.0, 2.0], micro_batches=3)
    12.0
    >>> gpipe_step_seconds([1.0, 3.0], [2.0, 6.0], micro_batches=3, transfer_seconds=0.5, sends="eager")
    31.0
    """
    at_least(1, micro_batches=micro_batches)
    at_least(0, transfer_seconds=transfer_seconds)
    if not len(forward_seconds) == len(backward_seconds) >= 1:
        rule = f"must be one per stage ({len(forward_seconds)})"
        raise InputError.of("backward_seconds", list(backward_seconds), rule, "give each stage's own")
    return math.fsum(
        _pass_seconds(list(order), micro_batches, transfer_seconds, sends)
        for order in (forward_seconds, reversed(backward_seconds))
    )


def _pass_seconds(seconds: list[float], micro_batches: int, transfer: float, sends: str) -> float:
    """Seconds from the first micro-batch's start on the first stage to the last one's end on the last stage."""
    if sends == "eager" and len(seconds) > 1:
        machines = [*seconds, transfer]
    else:
        machines = [seconds[0], *(own + transfer for own in seconds[1:])]
    return math.fsum(seconds) + (len(seconds) - 1) * transfer + (micro_batches - 1) * max(machines)


def step_bound_seconds(
    forward_seconds: Sequence[float], backward_seconds: Sequence[float], micro_batches: int
) -> float:
    """The least step of any schedule, communication free: max over s of (m (f_s + b_s) + sum before s of (f_j + b_j)).

    A stage does all its work after the first micro-batch has reached the stage and before the last micro-batch goes
    back to stage 0. For equal stages this is `equal_stages_step_seconds`, so no schedule beats GPipe or 1F1B.

    >>> step_bound_seconds([1.0, 3.0], [2.0, 6.0], micro_batches=3)
    30.0
    """
    at_least(1, micro_batches=micro_batches)
    both = [forward + backward for forward, backward in zip(forward_seconds, backward_seconds, strict=True)]
    return max(micro_batches * own + math.fsum(both[:stage]) for stage, own in enumerate(both))


def micro_batches_held(schedule: Literal["gpipe", "1f1b"], stage: int, stages: int, micro_batches: int) -> int:
    """The most micro-batches whose activations a stage holds: m with GPipe, min(p - s, m) with 1F1B.

    GPipe runs all forwards before the first backward. With 1F1B the forwards of stage s are at most p - s micro-batches
    ahead of its backwards, so memory does not grow with m: p in the first stage, 1 in the last.

    stage: s, from 0. stages: p. micro_batches: m.

    >>> [micro_batches_held("1f1b", stage, stages=4, micro_batches=8) for stage in range(4)]
    [4, 3, 2, 1]
    """
    at_least(1, stages=stages, micro_batches=micro_batches)
    if not 0 <= stage < stages:
        raise InputError.of("stage", stage, f"must be 0 to {stages - 1}", "stages count from 0")
    if schedule not in ("gpipe", "1f1b"):
        raise InputError.of("schedule", schedule, 'must be "gpipe" or "1f1b"', "take one of them")
    return micro_batches if schedule == "gpipe" else min(stages - stage, micro_batches)
