"""Lab 04: several processes train one model, each on its share of the samples, as if they were one process.

Every function below is called by every process (rank). Fill them in; `distsim lab run 04` starts four of them for real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Sampler

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of outputs and targets: the mean over the samples


@torch.no_grad()
def same_parameters(model: torch.nn.Module) -> None:
    """Gives every rank's model the state that rank 0's model has.

    The state is every number that the model computes with: parameters, frozen ones too, and buffers such as the running
    means of batch norm, also those that `state_dict` leaves out. They have several types. Tensors are filled in place:
    an optimizer that was made before still holds the model's parameters, and a parameter that stands in two layers
    (tied) is still one. No two tensors overlap. Each is broadcast once, tied ones too: no rank's link carries more.
    """
    raise NotImplementedError("write same_parameters: Gives every rank's model the state that rank 0's model has.")


class OwnSamples(Sampler[int]):
    """A rank's share of `count` samples, in an order that is new in every epoch.

    In an epoch, all samples stand in one random order, the same on every rank and for any number of ranks. If their
    number is not a multiple of the number of ranks, the order goes on with its own first samples, again and again if
    need be, until it is. Every rank takes the same number of samples, and together the ranks take the whole order. So
    does torch's DistributedSampler. A rank may take every N-th place of the order, or one block of it. Nothing goes
    over the network for it.
    """

    def __init__(self, count: int, seed: int = 0) -> None:
        """count: at least 1. seed: the same on every rank."""
        self.count = count
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch whose order the next iteration goes through."""
        raise NotImplementedError(
            "write OwnSamples.set_epoch: Chooses the epoch whose order the next iteration goes through."
        )

    def __len__(self) -> int:
        """Returns how many samples a rank takes in an epoch: as many on every rank."""
        raise NotImplementedError(
            "write OwnSamples.__len__: Returns how many samples a rank takes in an epoch: as many on every rank."
        )

    def __iter__(self) -> Iterator[int]:
        """Goes through this rank's samples (numbers from 0 to count - 1) in the order of the epoch.

        The order depends on seed and epoch alone, so that a run which is taken up again at epoch 7 goes on with the
        order of epoch 7. Before the first `set_epoch` it is epoch 0. Other random numbers stay as they were: those that
        this rank draws next by torch.rand (say for dropout), by Python's random and by numpy.
        """
        raise NotImplementedError(
            "write OwnSamples.__iter__: Goes through this rank's samples (numbers from 0 to count - 1) in the order of"
            " the epoch."
        )


def average_gradients(model: torch.nn.Module, samples: int) -> None:
    """Replaces the gradients of this rank's batch by those of the joined batch of all ranks.

    Before, a parameter's `grad` is the gradient of the mean loss over this rank's `samples` samples (at least 1, and
    not as many on every rank). Afterwards it is, on every rank, the gradient of the mean loss over the samples of all.

    Some ranks may have no gradient for a parameter (`grad` is None), as nothing in their batch needed it: they count
    as zeros. If no rank has one, zeros and None are both right. Each parameter goes over the network once, tied ones
    too. Frozen parameters (`requires_grad` is False) stay as they are, with whatever `grad` they have, and are not
    sent; what is frozen may change from call to call. Parameters may have several types and any shape. No rank's link
    carries more than the ring all-reduce of lab 03 needs, 2 (N - 1) / N times the bytes of the gradients, and 256
    bytes, for news such as the numbers of samples. Gradients are so small that their sums fit their type.
    """
    raise NotImplementedError(
        "write average_gradients: Replaces the gradients of this rank's batch by those of the joined batch of all "
        "ranks."
    )


def train_step(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, inputs: torch.Tensor, targets: torch.Tensor
) -> None:
    """Makes one step of the optimizer, on every rank the one that a single process makes with the joined batch.

    inputs, targets: this rank's part of the batch, a row for each sample. Gradients that are there before, also
    of frozen parameters, do not count. A parameter that no rank's part needs may have zeros for a gradient. The network
    carries the gradients once, as in `average_gradients`.
    """
    raise NotImplementedError(
        "write train_step: Makes one step of the optimizer, on every rank the one that a single process makes with the"
        " joined batch."
    )


def train(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, loader: DataLoader, epochs: int
) -> None:
    """Trains the model that rank 0 begins with on every rank's own samples, for `epochs` epochs (at least 1).

    Ranks begin with different models, and make them alike once. loader: gives this rank's batches (inputs, targets),
    one step for each. Its `sampler` has `set_epoch`, and gives every rank as many samples. Epochs count from 0; when
    the training begins, the sampler may stand at any epoch.
    """
    raise NotImplementedError(
        "write train: Trains the model that rank 0 begins with on every rank's own samples, for `epochs` epochs (at "
        "least 1)."
    )
