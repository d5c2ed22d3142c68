"""Lab 12: a model that is too big for one device, on several: a pipeline, split layers, and a sharded optimizer.

Each part gives the result of one process. Every rank calls every function below. Where there is one rank alone, an
exchange may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

Piece = tuple[Literal["forward", "backward"], int]  # what a stage computes next, and for which micro-batch
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of outputs and targets: the mean over the samples


# A pipeline: rank s holds stage s of the model


def stage_order(stage: int, stages: int, micro_batches: int, schedule: Literal["gpipe", "1f1b"]) -> list[Piece]:
    """Lists the pieces that a stage computes in one step, in order. Stages count from 0.

    A piece is a pair, such as ("forward", 0) for the forward of micro-batch 0.

    "gpipe": first the forwards of all micro-batches 0, 1, 2, ..., then the backwards of all, in the same order.

    "1f1b": a stage begins with as many forwards as there are stages after it, or with all forwards if there are fewer
    micro-batches. Then one forward and one backward take turns, until there is no forward left. Then come the backwards
    that are left. Forwards and backwards are in the order 0, 1, 2, ... So stage s of p stages never holds the
    activations of more than p - s micro-batches.
    """
    raise NotImplementedError("write stage_order: Lists the pieces that a stage computes in one step, in order.")


def pipeline_step(
    part: nn.Module,
    order: Sequence[Piece],
    inputs: Sequence[torch.Tensor],
    targets: Sequence[torch.Tensor],
    loss: Loss,
    tied: Sequence[tuple[nn.Parameter, dist.ProcessGroup]] = (),
) -> torch.Tensor | None:
    """Runs this rank's stage for one batch, so that every `.grad` becomes the gradient of the batch's mean loss.

    part: this rank's stage of the model. The last stage's outputs go to the loss. order: what the stage computes, in
    this order. It may be another one than `stage_order` makes. Neighbours do their forwards in one order of
    micro-batches, and their backwards in one order.

    inputs: on stage 0, a tensor for each micro-batch, with a row for each sample. On a later stage, tensors without
    memory (on the device "meta") that have the shape and the type of the activations that arrive; receive these into
    new tensors on the device "cpu". targets: on the last stage, those of each micro-batch; elsewhere empty.
    Micro-batches may have different numbers of samples (at least 1). All samples of the batch count alike.

    Each stage but the last sends the activations of each micro-batch to the next stage, in one message. Each stage but
    the first sends their gradient back, in one message of the same shape and type, also when its parameters are frozen.
    A stage never waits for a send before it goes on with the next piece that it can compute. Nothing else travels.
    Messages must be contiguous in memory; activations and their gradients may not be.

    Memory: when a stage has done the backward of a micro-batch, it lets go of this micro-batch's activations, those it
    has sent included. At most one micro-batch's activations may stay a little longer, until the next forward is over.
    Gradients that were sent back may stay until the step ends. All sends have been waited for by then.

    Parameters may be frozen (requires_grad is False), on a stage even all of them: they get no gradient. Before the
    step, each `.grad` is None. tied: parameters of this stage that stand in another stage, too, each with the group of
    the ranks that have the parameter. After all backwards, one all_reduce in this group gives all of them the sum of
    their gradients. Frozen ones are not exchanged. All ranks of a group name its parameters in the same order.

    Returns the mean loss of the batch, without its history (`detach`), on the last stage, and None elsewhere.
    """
    raise NotImplementedError(
        "write pipeline_step: Runs this rank's stage for one batch, so that every `.grad` becomes the gradient of the "
        "batch's mean loss."
    )


# Tensor parallelism: all ranks share each layer


def own_part(size: int) -> slice:
    """Returns which of `size` rows or columns this rank has.

    Ranks have neighbouring parts in the order of the ranks. The parts' sizes differ by one at most, and the larger
    parts come first. If there are fewer rows than ranks, the last ranks have none.
    """
    raise NotImplementedError("write own_part: Returns which of `size` rows or columns this rank has.")


class SumOfGradients(torch.autograd.Function):
    """Passes values on as they are. In backward, it sums the gradients of all ranks."""

    @staticmethod
    def forward(_context: Any, values: torch.Tensor) -> torch.Tensor:
        """Returns values that are the same on every rank."""
        return values.view_as(values)

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Returns the sum of all ranks' gradients, by one all_reduce.

        Autograd may use the tensor `gradient` elsewhere, so it must not change. It may not be contiguous in memory:
        give all_reduce a contiguous copy.
        """
        raise NotImplementedError(
            "write SumOfGradients.backward: Returns the sum of all ranks' gradients, by one all_reduce."
        )


class SumOfParts(torch.autograd.Function):
    """Sums the values of all ranks. In backward, it passes gradients on as they are."""

    @staticmethod
    def forward(_context: Any, values: torch.Tensor) -> torch.Tensor:
        """Returns the sum of all ranks' values, by one all_reduce. `values` must not change."""
        raise NotImplementedError("write SumOfParts.forward: Returns the sum of all ranks' values, by one all_reduce.")

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Returns the gradient of this rank's values. The gradient of the sum is the same on every rank."""
        raise NotImplementedError("write SumOfParts.backward: Returns the gradient of this rank's values.")


class ColumnLinear(nn.Module):
    """A linear layer of whose outputs each rank computes its part. Its input is the same on every rank.

    Megatron-LM calls the layer column-parallel, as it writes x A, with outputs as columns of A. In torch's weight,
    which has the shape (outputs, inputs), they are the rows.
    """

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        """Keeps this rank's part of the layer. weight, bias: of the whole layer, as nn.Linear has them.

        Afterwards `self.weight` and `self.bias` are parameters (the bias is None if there is none). They hold the
        `own_part` of the outputs, share no memory with the given ones, and are frozen where these are. The given ones
        stay as they are, and can be let go.
        """
        super().__init__()
        raise NotImplementedError(
            "write ColumnLinear.__init__: Keeps this rank's part of the layer. weight, bias: of the whole layer, as "
            "nn.Linear has them."
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Returns this rank's outputs. Inputs have any number of dimensions, and their last one is the features.

        Nothing travels in forward. In backward, one all_reduce gives every rank the gradient of the inputs, also if the
        weight is frozen. If the inputs need no gradient, nothing travels.
        """
        raise NotImplementedError("write ColumnLinear.forward: Returns this rank's outputs.")


class RowLinear(nn.Module):
    """A linear layer of whose inputs each rank has its part. Its outputs are the same on every rank."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        """Keeps this rank's part of the layer. weight, bias: of the whole layer, as nn.Linear has them.

        Afterwards `self.weight` holds the `own_part` of the inputs, and `self.bias` is a whole copy (None if there is
        none). They are parameters, share no memory with the given ones, and are frozen where these are. The given ones
        stay as they are, and can be let go.
        """
        super().__init__()
        raise NotImplementedError(
            "write RowLinear.__init__: Keeps this rank's part of the layer. weight, bias: of the whole layer, as "
            "nn.Linear has them."
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Returns the outputs of the whole layer. inputs: this rank's part of the features, in the last dimension.

        One all_reduce sums the ranks' parts in forward. Nothing travels in backward.
        """
        raise NotImplementedError(
            "write RowLinear.forward: Returns the outputs of the whole layer. inputs: this rank's part of the "
            "features, in the last dimension."
        )


# Sharded training: each rank has a batch of its own, and a share of the optimizer's state


class ShardedAdam:
    """Adam for data parallel training; each rank keeps the state of its share of the numbers, and updates this share.

    optimizer = ShardedAdam(model.parameters(), lr=0.001)
    loss.backward()                # this rank's batch
    optimizer.step()               # now all ranks have the same new parameters
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        """Prepares this rank's share of the state. Nothing travels.

        parameters: may name a tied parameter twice; it is one. Frozen ones are left out. At least one is trained, and
        all have one type. They have any shape, also one without numbers, and may not be contiguous in memory.

        Of the n numbers that are trained, each of N ranks has the state of n / N, rounded up. Beside the model, its
        gradients and its share of Adam's two means, a rank keeps at most 64 bytes of tensors between steps.
        """
        self.lr, self.betas, self.eps = lr, betas, eps
        raise NotImplementedError("write ShardedAdam.__init__: Prepares this rank's share of the state.")

    @torch.no_grad()
    def step(self) -> None:
        """Updates all parameters in place, as one process does with Adam.

        With g the mean of all ranks' `.grad` and t the number of this step, from 1 on, for each number p:

            m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2        m and v begin with 0; (b1, b2) = betas
            p = p - lr  m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)

        A `.grad` that is None counts as zeros, and the parameter is updated all the same. `self.lr` may change from
        step to step. The gradients, as one flat tensor that zeros fill up to a multiple of N, go through one
        reduce-scatter. The new parameters, filled up likewise, go through one all-gather. Nothing else travels.
        Afterwards each `.grad` may be what it was, or None.
        """
        raise NotImplementedError(
            "write ShardedAdam.step: Updates all parameters in place, as one process does with Adam."
        )
