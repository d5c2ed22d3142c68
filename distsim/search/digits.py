"""The trial of the course: a small network learns digits, and samples held out tell how well.

Of the 1,437 images to learn from, a trial learns from 1,149 and is chosen by the other 288. The 360 test images are for
one last look, by `test_accuracy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import nn

from distsim.learning.kernels import one_thread, plain_convolutions
from distsim.learning.problems import Data, cnn, digits, mlp
from distsim.search.job import Job

LEARNT = 1149
MODELS = {"cnn": cnn, "mlp": mlp}


@dataclass(frozen=True)
class Trained:
    """losses, accuracies: on the samples held out, after each epoch. model: as it is after the last one."""

    losses: list[float]
    accuracies: list[float]
    model: nn.Module


@cache
def learnt_and_held_out() -> tuple[Data, Data]:
    """The images that trials learn from, and those that they are chosen by."""
    data, _ = digits()
    return Data(data.inputs[:LEARNT], data.targets[:LEARNT]), Data(data.inputs[LEARNT:], data.targets[LEARNT:])


def train(batch: int, rate: float, epochs: int, seed: int = 0, model: str = "mlp") -> Trained:
    """A trial: plain SGD, on one core. The same arguments give the same numbers.

    seed: of the first parameters, and of the order of the samples.

    >>> len(train(batch=128, rate=0.3, epochs=2).losses)
    2
    """
    own = torch.Generator().manual_seed(seed)
    learnt, held_out = learnt_and_held_out()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MODELS[model]()
    optimizer = torch.optim.SGD(network.parameters(), lr=rate)
    losses, accuracies = [], []
    with one_thread(), plain_convolutions():  # as in real runs of the same network
        for _ in range(epochs):
            for samples in torch.split(torch.randperm(len(learnt), generator=own), batch):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(learnt.inputs[samples]), learnt.targets[samples])
                loss.backward()  # type: ignore[no-untyped-call] # torch
                optimizer.step()
            held_out_loss, accuracy = _judged(network, held_out)
            losses.append(held_out_loss)
            accuracies.append(accuracy)
    return Trained(losses, accuracies, network)


def test_accuracy(network: nn.Module) -> float:
    """The share of the test images that it names right. Look once, at the trial chosen."""
    return _judged(network, digits()[1])[1]


def trial(job: Job) -> float:
    """A job of a real search, whole: the loss on the samples held out. Settings: batch, and rate (0.02 without it)."""
    settings = job.settings
    trained = train(int(settings["batch"]), float(settings.get("rate", 0.02)), job.until, model="cnn")
    return trained.losses[-1]


def _judged(network: nn.Module, data: Data) -> tuple[float, float]:
    with torch.inference_mode():
        outputs = network(data.inputs)
        loss = nn.functional.cross_entropy(outputs, data.targets).item()
        return loss, (outputs.argmax(dim=1) == data.targets).double().mean().item()
