"""Tensor parallel training: the workers share every block of a transformer and sum their results four times.

Source: Shoeybi et al. 2019, Megatron-LM: training multi-billion parameter language models using model parallelism
(arXiv 1909.08053), section 3: two all-reduces of a block's activations in forward, and two in backward.
"""

from __future__ import annotations

from distsim.theory.arguments import at_least
from distsim.theory.collectives import all_reduce_bytes_per_worker

ALL_REDUCES = 4  # of a block in one step


def tensor_link_bytes(activation_bytes: float, blocks: int, workers: int) -> float:
    """Bytes that each worker's link carries in each direction in one step, around a ring.

    activation_bytes: of what one block hands to the next, for the whole batch. blocks: L. workers: N; each of the 4 L
    all-reduces carries 2 (N - 1) / N n.

    >>> tensor_link_bytes(activation_bytes=1e6, blocks=2, workers=4)
    12000000.0
    """
    at_least(1, blocks=blocks)
    return ALL_REDUCES * blocks * all_reduce_bytes_per_worker(activation_bytes, workers)


def tensor_step_seconds(compute_seconds: float, blocks: int, all_reduce_seconds: float) -> float:
    """Seconds of one step where all workers are alike: C + 4 L a, since nothing overlaps.

    compute_seconds: C, of each worker's part of the batch's work. all_reduce_seconds: a, of one all-reduce.

    >>> tensor_step_seconds(compute_seconds=1.0, blocks=24, all_reduce_seconds=0.002)
    1.192
    """
    at_least(0, compute_seconds=compute_seconds, all_reduce_seconds=all_reduce_seconds)
    at_least(1, blocks=blocks)
    return compute_seconds + ALL_REDUCES * blocks * all_reduce_seconds
