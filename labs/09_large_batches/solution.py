"""Lab 09: updates of large batches: gradients that add up before one exchange, a rate that fits, and the noise scale.

N ranks train one model. In an update, each rank goes through up to k batches of at most b samples, one after the other.
Then the ranks exchange their gradients once. So an update averages the gradients of up to N x b x k samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of outputs and targets: the mean over the samples
Batch = tuple[torch.Tensor, torch.Tensor]  # inputs and targets, a row for each sample


class Squares(NamedTuple):
    """Squared lengths of gradients, for two sizes of a batch: the mean of the ranks' own, and that of their mean."""

    small_batch: float
    small: float
    large_batch: float
    large: float


def own_batches(order: Sequence[int], batch: int, accumulated: int) -> list[list[list[int]]]:
    """Returns this rank's samples of one epoch: for each update a list of batches, each a list of samples.

    order: the samples, each by its number in the data set; at least one, and the same list on every rank. It stays as
    it is. N ranks take the order piece by piece: each update takes the next N x batch x accumulated samples, and the
    last update takes the samples that are left. Each sample of the order is taken once, by one rank.

    Within an update, any two ranks have equally many samples, or one has one more than the other. Which rank takes
    which sample of the update is free. A rank divides its samples into as few batches as possible, of at most `batch`
    samples. No batch is empty. A rank without a sample in the last update has an empty list there. So every rank has as
    many updates. Nothing goes over the network.
    """
    # write
    ranks = dist.get_world_size()
    joined = ranks * batch * accumulated
    updates = []
    for first in range(0, len(order), joined):
        own = order[first : first + joined][dist.get_rank() :: ranks]
        updates.append([list(own[start : start + batch]) for start in range(0, len(own), batch)])
    return updates
    # end


def joined_gradient(model: torch.nn.Module, loss: Loss, batches: Sequence[Batch]) -> Squares:
    """Makes `.grad` the gradient of the mean loss over the samples of all ranks, and measures squared lengths.

    batches: this rank's batches of the update. They may have different sizes. A rank may have more samples than
    another rank, and some ranks (not all) may have no batch. The model and the loss see one batch at a time, and each
    batch once: all batches together would not fit into memory.

    Afterwards each trained parameter's `grad` is the same on every rank: the gradient of the mean over all M samples of
    the update. Gradients from before do not count. A rank whose samples do not need a parameter counts as zeros. If no
    rank's samples need the parameter, its gradient is zeros. Frozen parameters (`requires_grad` is False) and whatever
    `grad` they have stay as they are; which parameters are frozen may change from call to call. A tied parameter (one
    parameter in two layers) is one. Only gradients change. At least one parameter is trained. All parameters have one
    type, and any shape and layout.

    The network carries one exchange for the whole update: an all-reduce of one tensor, which holds the gradients of the
    trained parameters in their own type, and at most 64 bytes beside them. With one rank the exchange may be left out.

    Returns what the noise scale needs, the same on every rank. Own gradient: of the mean loss over the rank's own
    samples. large_batch: M. large: the squared length of the joined gradient, over all trained parameters. small: the
    mean of the squared lengths of the ranks' own gradients, in which a rank with m of all M samples counts m / M.
    small_batch: M / R, where R is the number of ranks that have samples.
    """
    # write
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:
        parameter.grad = torch.zeros_like(parameter)
    samples = 0
    for inputs, targets in batches:
        (len(inputs) * loss(model(inputs), targets)).backward()
        samples += len(inputs)
    summed = torch.cat([parameter.grad.flatten() for parameter in trained])
    square = summed.square().sum() / max(samples, 1)
    flat = torch.cat([summed, summed.new_tensor([square, samples, samples > 0])])
    dist.all_reduce(flat)
    mean, (squares, total, having) = flat[:-3], flat[-3:].tolist()
    mean /= total
    for parameter, part in zip(trained, mean.split([one.numel() for one in trained]), strict=True):
        parameter.grad = part.view_as(parameter)
    return Squares(total / having, squares / total, total, mean.square().sum().item())
    # end


def learning_rate(update: int, rate: float, growth: float, warm_up: int) -> float:
    """Returns the learning rate of an update: `growth` times `rate`, after a gradual warm-up.

    update: its number; the first update of a training has number 0. rate: suits one process with one batch. growth: how
    many times as many samples an update has. Update 0 has `rate`. From each update to the next, the rate changes by the
    same amount. Update number `warm_up` is the first with growth x rate, and all later updates have it, too. With a
    warm_up of 0, all updates have growth x rate. (Goyal et al. 2017 call this gradual warm-up.)
    """
    # write
    if update >= warm_up:
        return growth * rate
    return rate + (growth - 1) * rate * update / warm_up
    # end


def train(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, inputs: torch.Tensor, targets: torch.Tensor,
    orders: Sequence[Sequence[int]], batch: int, accumulated: int, rate: float, warm_up: int,
) -> list[Squares]:  # fmt: skip
    """Trains the model, on every rank with the same updates that one process makes with batches of N x b x k samples.

    inputs, targets: of all samples; row i is that of sample i. orders: for each epoch the order of its samples. Each
    epoch is divided by `own_batches`, and a rank computes with its own samples alone. Each of the updates takes the
    gradient that `joined_gradient` gives, and one step of the optimizer. All ranks begin with the same parameters.

    Every parameter group of the optimizer has the update's learning rate when the step is made. It is that of
    `learning_rate` where N ranks accumulate k batches: an update of full batches has N x k times as many samples as one
    batch. The last update of an epoch may have fewer samples; its rate does not depend on that. Updates count on from
    one epoch to the next: the number 0 comes once. Returns what `joined_gradient` has returned, update by update.
    """
    # write
    growth = dist.get_world_size() * accumulated
    measured = []
    for order in orders:
        for batches in own_batches(order, batch, accumulated):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(len(measured), rate, growth, warm_up)
            measured.append(joined_gradient(model, loss, [(inputs[own], targets[own]) for own in batches]))
            optimizer.step()
    return measured
    # end


def noise_scale(measured: Sequence[Squares]) -> float:
    """Returns the gradient noise scale V / |G|^2 (McCandlish et al. 2018) from squared lengths for two batches.

    G is the mean gradient, and V is the variance of one sample's gradient, summed over all parameters. The mean of B
    samples' gradients has the squared length |G|^2 + V / B, on average. So each of the `measured` gives two equations
    for |G|^2 and V. Their solutions are right on average, but noisy; some are negative. Take the mean of all solutions
    for V, and the mean of all solutions for |G|^2. Divide the first mean by the second one.

    The batches may differ from one element of `measured` to the next. An element whose two batches are equal says
    nothing and does not count; at least one has different batches. If the mean of |G|^2 is not above 0, noise hides the
    gradient, and the result is infinite (`math.inf`). Otherwise, if the mean of V is negative, the result is 0.
    """
    # write
    noises, lengths = [], []
    for one in measured:
        if one.small_batch != one.large_batch:
            noises.append((one.small - one.large) / (1 / one.small_batch - 1 / one.large_batch))
            lengths.append(one.large - noises[-1] / one.large_batch)
    if sum(lengths) <= 0:
        return math.inf
    return max(sum(noises) / sum(lengths), 0.0)
    # end
