"""The training with functions as Horovod has them: a broadcast of the parameters, and an optimizer that averages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler

from distsim.frameworks.task import BATCH, RATE, SEED, Record, network, training_set


class AveragingSGD(torch.optim.SGD):
    """SGD on gradients that are averaged over the ranks, as Horovod's optimizer does it.

    An all-reduce begins as soon as backward has a gradient. `step` waits for all of them, then updates.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float) -> None:
        own = list(parameters)
        super().__init__(own, rate)
        self._begun: list[tuple[Tensor, dist.Work]] = []
        for parameter in own:
            parameter.register_post_accumulate_grad_hook(self._begin)  # type: ignore[no-untyped-call]

    def _begin(self, parameter: Tensor) -> None:
        assert parameter.grad is not None, "the hook follows a gradient"
        self._begun.append((parameter.grad, dist.all_reduce(parameter.grad, async_op=True)))

    def step(self, closure: None = None) -> None:  # type: ignore[override] # this training needs no closure
        """Waits for the sums, makes means of them, and updates."""
        for gradient, work in self._begun:
            work.wait()
            gradient /= dist.get_world_size()
        self._begun.clear()
        super().step(closure)


def broadcast_from_first(model: nn.Module) -> None:
    """Gives each rank the parameters of rank 0."""
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)


def train(updates: int, record: Record) -> None:
    """Trains for so many updates."""
    dist.init_process_group("gloo")
    data = training_set()
    sampler: DistributedSampler[Any] = DistributedSampler(
        data, num_replicas=dist.get_world_size(), rank=dist.get_rank(), seed=SEED
    )
    loader = DataLoader(data, BATCH, sampler=sampler)
    model = network()
    broadcast_from_first(model)
    optimizer = AveragingSGD(model.parameters(), RATE)
    for epoch in count():
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            record.update(loss)
            if len(record.losses) == updates:
                record.finish(model)
                dist.destroy_process_group()
                return
