"""The seconds of a step of distributed data parallel training that sends gradients in buckets during backward.

F and W are the seconds of forward and backward, C the seconds of all all-reduces together. Buckets are sent one after
the other, each when its gradients are ready (Li et al. 2020, PyTorch Distributed, arXiv 2006.15704, section 3.2.3).
If workers differ, the times are the slowest worker's, since an all-reduce begins when the last worker is ready.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from distsim.arrays import Floats
from distsim.errors import InputError
from distsim.theory.arguments import at_least


def bucket_ready_seconds(forward_seconds: float, backward_seconds: float, layers_in_bucket: Sequence[int]) -> Floats:
    """When the gradients of each bucket are ready, in seconds from the start of the step: F + W (layers so far) / L.

    forward_seconds: F. backward_seconds: W, in equal parts for L layers, the last layer first. layers_in_bucket: in
    the order of sending, L in all. Returns seconds, one per bucket.

    >>> bucket_ready_seconds(0.1, 0.2, layers_in_bucket=[1, 3])
    array([0.15, 0.3 ])
    """
    at_least(0, forward_seconds=forward_seconds, backward_seconds=backward_seconds)
    layers = np.asarray(layers_in_bucket)
    if not layers.size or (layers < 1).any():
        raise InputError.of(
            "layers_in_bucket", layers_in_bucket, "must be counts of at least 1", "leave out empty buckets"
        )
    return np.asarray(forward_seconds + backward_seconds * np.cumsum(layers) / layers.sum())


def overlapped_step_seconds(
    ready_seconds: Sequence[float] | Floats, all_reduce_seconds: Sequence[float] | Floats
) -> float:
    """The end of the last all-reduce: max over buckets j of (r_j + c_j + c_(j+1) + … + c_k).

    For the largest term, the link is idle until bucket j is ready and busy afterwards (the queue of Lindley 1952, The
    theory of queues with a single server).

    ready_seconds: r, when each bucket's gradients are ready, in the order of sending. all_reduce_seconds: c, of each.

    >>> round(overlapped_step_seconds([0.15, 0.3], [0.2, 0.1]), 9)    # the link is busy until 0.35 s, then for 0.1 s
    0.45
    """
    ready, seconds = np.asarray(ready_seconds, dtype=float), np.asarray(all_reduce_seconds, dtype=float)
    if ready.shape != seconds.shape or ready.ndim != 1 or not ready.size:
        raise InputError.of(
            "all_reduce_seconds", all_reduce_seconds, f"must be one per bucket ({ready.size})", "give each bucket's own"
        )
    return float((ready + np.cumsum(seconds[::-1])[::-1]).max())


def step_without_overlap_seconds(forward_seconds: float, backward_seconds: float, all_reduce_seconds: float) -> float:
    """Forward, backward, then all communication: F + W + C. No split of the same C into buckets takes longer.

    >>> round(step_without_overlap_seconds(0.1, 0.2, all_reduce_seconds=0.15), 9)
    0.45
    """
    at_least(0, forward_seconds=forward_seconds, backward_seconds=backward_seconds)
    at_least(0, all_reduce_seconds=all_reduce_seconds)
    return forward_seconds + backward_seconds + all_reduce_seconds


def step_with_perfect_overlap_seconds(
    forward_seconds: float, backward_seconds: float, all_reduce_seconds: float
) -> float:
    """Backward and communication fully in parallel: F + max(W, C). No overlap with backward is faster.

    >>> round(step_with_perfect_overlap_seconds(0.1, 0.2, all_reduce_seconds=0.15), 9)
    0.3
    """
    at_least(0, forward_seconds=forward_seconds, backward_seconds=backward_seconds)
    at_least(0, all_reduce_seconds=all_reduce_seconds)
    return forward_seconds + max(backward_seconds, all_reduce_seconds)


def equal_buckets_step_seconds(
    forward_seconds: float,
    backward_seconds: float,
    all_reduce_seconds: float,
    buckets: int,
    seconds_per_bucket: float = 0.0,
) -> float:
    """The step with k equal buckets: F + max(W, C') + min(W, C') / k, where C' = C + k l.

    Many buckets overlap better, but each bucket adds l. If backward hides all buckets but the last, the exposed time is
    C / k + l. In `overlapped_step_seconds`, equal buckets have their largest term at the first or the last bucket.

    all_reduce_seconds: C, of the bytes alone. buckets: k. seconds_per_bucket: l, the latency: 2 (N - 1) a for a ring.

    >>> [round(equal_buckets_step_seconds(0.1, 0.2, 0.15, k, seconds_per_bucket=0.001), 4) for k in (1, 8, 128)]
    [0.451, 0.3198, 0.3796]
    """
    at_least(0, forward_seconds=forward_seconds, backward_seconds=backward_seconds)
    at_least(0, all_reduce_seconds=all_reduce_seconds, seconds_per_bucket=seconds_per_bucket)
    at_least(1, buckets=buckets)
    together = all_reduce_seconds + buckets * seconds_per_bucket
    return forward_seconds + max(backward_seconds, together) + min(backward_seconds, together) / buckets


def accumulated_step_seconds(compute_seconds: float, communicating_step_seconds: float, accumulate: int) -> float:
    """The mean local step if only every k-th step communicates: ((k - 1) (F + W) + T) / k = F + W + exposed / k.

    compute_seconds: F + W. communicating_step_seconds: T, of a step with its all-reduce, overlapped or not.
    accumulate: k.

    >>> round(accumulated_step_seconds(0.3, communicating_step_seconds=0.45, accumulate=3), 9)
    0.35
    """
    at_least(1, accumulate=accumulate)
    at_least(0, compute_seconds=compute_seconds)
    at_least(compute_seconds, communicating_step_seconds=communicating_step_seconds)
    return compute_seconds + (communicating_step_seconds - compute_seconds) / accumulate
