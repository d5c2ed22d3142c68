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
    # write
    ahead = micro_batches if schedule == "gpipe" else min(stages - 1 - stage, micro_batches)
    pieces = [("forward", micro) for micro in range(ahead)]
    for micro in range(micro_batches):
        if ahead + micro < micro_batches:
            pieces.append(("forward", ahead + micro))
        pieces.append(("backward", micro))
    return pieces
    # end


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
    # write
    stage, last = dist.get_rank(), dist.get_world_size() - 1
    samples = sum(len(one) for one in inputs)
    held, sent, total = {}, [], None
    for direction, micro in order:
        if direction == "forward":
            entering = inputs[micro]
            if stage > 0:
                entering = torch.empty_like(entering, device="cpu")
                dist.recv(entering, stage - 1)
                entering.requires_grad_()
            leaving, message = part(entering), None
            if stage < last:
                message = dist.isend(leaving.detach().contiguous(), stage + 1)
            else:
                leaving = loss(leaving, targets[micro]) * (len(entering) / samples)
                total = leaving.detach() if total is None else total + leaving.detach()
            held[micro] = entering, leaving, message
        else:
            entering, leaving, message = held.pop(micro)
            gradient = None
            if stage < last:
                gradient = torch.empty_like(leaving, memory_format=torch.contiguous_format)
                dist.recv(gradient, stage + 1)
                message.wait()
            if leaving.requires_grad:
                leaving.backward(gradient)
            if stage > 0:
                sent.append(dist.isend(entering.grad.contiguous(), stage - 1))
    for send in sent:
        send.wait()
    for parameter, group in tied:
        if parameter.requires_grad:
            dist.all_reduce(parameter.grad, group=group)
    return total
    # end


# Tensor parallelism: all ranks share each layer


def own_part(size: int) -> slice:
    """Returns which of `size` rows or columns this rank has.

    Ranks have neighbouring parts in the order of the ranks. The parts' sizes differ by one at most, and the larger
    parts come first. If there are fewer rows than ranks, the last ranks have none.
    """
    # write
    small, larger = divmod(size, dist.get_world_size())
    rank = dist.get_rank()
    first = rank * small + min(rank, larger)
    return slice(first, first + small + (rank < larger))
    # end


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
        # write
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total
        # end


class SumOfParts(torch.autograd.Function):
    """Sums the values of all ranks. In backward, it passes gradients on as they are."""

    @staticmethod
    def forward(_context: Any, values: torch.Tensor) -> torch.Tensor:
        """Returns the sum of all ranks' values, by one all_reduce. `values` must not change."""
        # write
        total = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total
        # end

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Returns the gradient of this rank's values. The gradient of the sum is the same on every rank."""
        # write
        return gradient
        # end


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
        # write
        own = own_part(len(weight))
        self.weight = nn.Parameter(weight.detach()[own].clone(), weight.requires_grad)
        self.bias = None if bias is None else nn.Parameter(bias.detach()[own].clone(), bias.requires_grad)
        # end

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Returns this rank's outputs. Inputs have any number of dimensions, and their last one is the features.

        Nothing travels in forward. In backward, one all_reduce gives every rank the gradient of the inputs, also if the
        weight is frozen. If the inputs need no gradient, nothing travels.
        """
        # write
        outputs = functional.linear(SumOfGradients.apply(inputs), self.weight)
        return outputs if self.bias is None else outputs + self.bias
        # end


class RowLinear(nn.Module):
    """A linear layer of whose inputs each rank has its part. Its outputs are the same on every rank."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        """Keeps this rank's part of the layer. weight, bias: of the whole layer, as nn.Linear has them.

        Afterwards `self.weight` holds the `own_part` of the inputs, and `self.bias` is a whole copy (None if there is
        none). They are parameters, share no memory with the given ones, and are frozen where these are. The given ones
        stay as they are, and can be let go.
        """
        super().__init__()
        # write
        own = own_part(weight.shape[1])
        self.weight = nn.Parameter(weight.detach()[:, own].clone(), weight.requires_grad)
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)
        # end

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Returns the outputs of the whole layer. inputs: this rank's part of the features, in the last dimension.

        One all_reduce sums the ranks' parts in forward. Nothing travels in backward.
        """
        # write
        outputs = SumOfParts.apply(functional.linear(inputs, self.weight))
        return outputs if self.bias is None else outputs + self.bias
        # end


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
        # write
        self.parameters = [parameter for parameter in dict.fromkeys(parameters) if parameter.requires_grad]
        numbers = sum(parameter.numel() for parameter in self.parameters)
        self.share = -(-numbers // dist.get_world_size())
        self.mean, self.square = self.parameters[0].new_zeros(2, self.share)
        self.steps = 0
        # end

    # write
    def flat(self, tensors: Iterable[torch.Tensor]) -> torch.Tensor:
        """All numbers in one tensor, filled up with zeros to as many for each rank."""
        whole = torch.cat([one.flatten() for one in tensors])
        return functional.pad(whole, (0, self.share * dist.get_world_size() - len(whole)))

    # end

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
        # write
        ranks, rank = dist.get_world_size(), dist.get_rank()
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in self.parameters]
        gradient = torch.empty_like(self.mean)
        dist.reduce_scatter(gradient, list(self.flat(gradients).chunk(ranks)))
        gradient /= ranks
        self.steps += 1
        (first, second), steps = self.betas, self.steps
        self.mean.mul_(first).add_(gradient, alpha=1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        own = self.flat(self.parameters).chunk(ranks)[rank]
        own -= self.lr * self.mean / (1 - first**steps) / ((self.square / (1 - second**steps)).sqrt() + self.eps)
        parts = [torch.empty_like(own) for _ in range(ranks)]
        dist.all_gather(parts, own)
        sizes = [one.numel() for one in self.parameters]
        for parameter, new in zip(self.parameters, torch.cat(parts)[: sum(sizes)].split(sizes), strict=True):
            parameter.copy_(new.view(parameter.shape))
        # end
