"""The training with functions as Horovod has them: a broadcast of the parameters, and an optimizer that averages."""

from __future__ import annotations

from itertools import count
from typing import Any

import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler

from distsim.frameworks.averaging import AveragingSGD, broadcast_from_first
from distsim.frameworks.task import BATCH, RATE, SEED, Record, network, training_set


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
