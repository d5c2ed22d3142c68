"""The script to port: it trains a model in one process. Nothing in here is to be changed.

`train` is the script. Everything that it needs comes with a `Job`, so that a port can be compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Epoch(NamedTuple):
    """The losses of one epoch: the mean of its batches' losses, and the losses on the test data when it is over."""

    training_loss: float
    test_loss: float
    accuracy: float  # the share of the test samples whose class is right, from 0 to 1


@dataclass(frozen=True)
class Job:
    """What to train, and how.

    model: gives a number for each class and sample. training, test: data sets of pairs, a sample and its class.
    loss: of outputs and classes, the mean over the samples. batch: samples of one batch of one process.
    accumulated: batches of one process in an update. epochs: of the training data. rate: the learning rate that suits
    updates of `rate_samples` samples. decay: the factor of the learning rate from one epoch to the next.
    optimizer: makes the optimizer from parameters and a learning rate. save: writes a checkpoint of a state_dict, first
    under another name, so that the file is always whole; it takes some time, in the thread that trains.
    """

    model: nn.Module
    training: Dataset[tuple[Tensor, Tensor]]
    test: Dataset[tuple[Tensor, Tensor]]
    loss: Callable[[Tensor, Tensor], Tensor]
    batch: int
    accumulated: int
    epochs: int
    rate: float
    rate_samples: int
    decay: float
    optimizer: Callable[[Iterable[nn.Parameter], float], torch.optim.Optimizer]
    save: Callable[[dict[str, Tensor]], None]


def train(job: Job) -> list[Epoch]:
    """Trains in one process. Returns what each epoch has come to."""
    batches = DataLoader(job.training, batch_size=job.batch, shuffle=True)
    model = job.model
    steps = job.optimizer(model.parameters(), job.rate * job.batch * job.accumulated / job.rate_samples)
    falling = StepLR(steps, step_size=1, gamma=job.decay)
    history = []
    for _ in range(job.epochs):
        batch_losses = []
        for number, (samples, classes) in enumerate(batches, start=1):
            batch_loss = job.loss(model(samples), classes)
            (batch_loss / job.accumulated).backward()
            batch_losses.append(batch_loss.item())
            if number % job.accumulated == 0:
                steps.step()
                steps.zero_grad()
        falling.step()
        history.append(Epoch(fmean(batch_losses), *tested(job)))
        job.save(model.state_dict())
    return history


@torch.no_grad()
def tested(job: Job) -> tuple[float, float]:
    """The loss and the accuracy on all test samples, in one process."""
    job.model.eval()
    summed, right, count = 0.0, 0, 0
    for samples, classes in DataLoader(job.test, batch_size=job.batch):
        scores = job.model(samples)
        summed += job.loss(scores, classes).item() * len(samples)
        right += int((scores.argmax(dim=1) == classes).sum())
        count += len(samples)
    job.model.train()
    return summed / count, right / count
