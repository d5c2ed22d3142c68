"""The training with functions as Horovod has them: a broadcast of the parameters, and an optimizer that averages."""

from __future__ import annotations

from itertools import count

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler

from distsim.frameworks.task import BATCH, RATE, SEED, Record, network, training_set


class AveragingSGD(torch.optim.SGD):
    """SGD whose step first replaces each gradient by its mean over the ranks, as Horovod's optimizer does."""

    def step(self, closure: None = None) -> None:  # type: ignore[override] # this training needs no closure
        """Averages, then updates."""
        for group in self.param_groups:
            for parameter in group["params"]:
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
        super().step(closure)


def broadcast_from_first(model: nn.Module) -> None:
    """Gives each rank the parameters of rank 0."""
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)


def train(updates: int, record: Record) -> None:
    """Trains for so many updates."""
    dist.init_process_group("gloo")
    data = training_set()
    sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=dist.get_rank(), seed=SEED)
    loader = DataLoader(data, BATCH, sampler=sampler)
    model = network()
    broadcast_from_first(model)
    optimizer = AveragingSGD(model.parameters(), RATE)
    for epoch in count():
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            record.update(loss)
            if len(record.losses) == updates:
                record.finish(model)
                dist.destroy_process_group()
                return
