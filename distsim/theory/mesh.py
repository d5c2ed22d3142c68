"""A mesh of d groups that each have a batch, and in each t workers that share every block of a transformer.

With p stages of a pipeline, each stage is such a mesh, of its part of the blocks.

Sources: those of `theory.tensor` and `theory.sharding`, whose bytes add up; Narayanan et al. 2021, Efficient
large-scale language model training on GPU clusters (arXiv 2104.04473), section 3, for the mesh.
"""

from __future__ import annotations

from typing import Literal

from distsim.errors import InputError
from distsim.theory.arguments import at_least
from distsim.theory.pipeline import gpipe_step_seconds
from distsim.theory.sharding import sharded_link_bytes
from distsim.theory.tensor import tensor_link_bytes


def mesh_link_bytes(
    num_bytes: float, activation_bytes: float, blocks: int, data: int, tensor: int, stage: int = 0
) -> tuple[float, float]:
    """Bytes that each worker sends in one step around the ring of its d workers, and around that of its t.

    num_bytes: of the parameters of all blocks, of which a worker has a t-th. activation_bytes: of what one block hands
    to the next, for the batch of a group. stage: of sharded training; 0 all-reduces. Raises InputError for another one.

    >>> mesh_link_bytes(4e9, activation_bytes=1e6, blocks=2, data=4, tensor=2)
    (3000000000.0, 8000000.0)
    """
    at_least(1, tensor=tensor)
    return (
        sharded_link_bytes(num_bytes / tensor, data, stage),
        tensor_link_bytes(activation_bytes, blocks, tensor),
    )


def mesh_step_seconds(
    blocks: int, forward_seconds: float, backward_seconds: float, sum_seconds: float, reduce_seconds: float
) -> float:
    """Seconds of one step of stage 0 where t > 1, all workers are alike, and the two kinds of groups share no link.

    With L blocks, f and b of a block's forward and backward, a of one all-reduce of activations and r of one of a
    block's gradients: the gradients of the last block are there at L (f + 2 a) + b + 2 a, those of the others each
    b + 2 a later, and their all-reduces follow one another.

    blocks: L. forward_seconds, backward_seconds: f and b, of a worker's part. sum_seconds: a. reduce_seconds: r.

    >>> mesh_step_seconds(blocks=2, forward_seconds=1.0, backward_seconds=2.0, sum_seconds=0.1, reduce_seconds=3.0)
    10.6
    """
    at_least(1, blocks=blocks)
    at_least(
        0, forward_seconds=forward_seconds, backward_seconds=backward_seconds, sum_seconds=sum_seconds,
        reduce_seconds=reduce_seconds,
    )  # fmt: skip
    backward = backward_seconds + 2 * sum_seconds
    first = blocks * (forward_seconds + 2 * sum_seconds) + backward
    return first + (blocks - 1) * max(backward, reduce_seconds) + reduce_seconds


def mesh_pipeline_step_seconds(
    blocks: int, stages: int, micro_batches: int, forward_seconds: float, backward_seconds: float,
    sum_seconds: float = 0.0, message_seconds: float = 0.0, reduce_seconds: float = 0.0,
    sends: Literal["rendezvous", "eager"] = "rendezvous",
) -> float:  # fmt: skip
    """Seconds of one GPipe step of p stages of d x t workers that are alike, where the exchanges share no link.

    A stage has L / p blocks, so that a micro-batch takes L / p (f + 2 a) forward, and L / p (b + 2 a) backward. After
    the last backward, which is the first stage's, its workers sum the gradients of their blocks: r.

    blocks: L. stages: p. forward_seconds, backward_seconds: f and b, of a worker's part of one block, for one
    micro-batch. sum_seconds: a, of one sum of a micro-batch's activations; 0 where t = 1. message_seconds: of one
    message between stages. reduce_seconds: r; 0 where d = 1. sends: as in a scenario. Raises InputError where L / p is
    not whole.

    >>> mesh_pipeline_step_seconds(blocks=4, stages=2, micro_batches=1, forward_seconds=1.0, backward_seconds=2.0,
    ...                            sum_seconds=0.1, message_seconds=0.5, reduce_seconds=3.0)
    17.6
    """
    at_least(1, blocks=blocks, stages=stages)
    at_least(
        0, forward_seconds=forward_seconds, backward_seconds=backward_seconds, sum_seconds=sum_seconds,
        reduce_seconds=reduce_seconds,
    )  # fmt: skip
    own, left = divmod(blocks, stages)
    if left:
        raise InputError.of("blocks", blocks, f"must be a multiple of the {stages} stages", "take as many for each")
    forward, backward = (own * (one + 2 * sum_seconds) for one in (forward_seconds, backward_seconds))
    step = gpipe_step_seconds([forward] * stages, [backward] * stages, micro_batches, message_seconds, sends)
    return step + reduce_seconds
