"""The training with DistributedDataParallel: the script makes the group, the sampler and the wrapped model."""

from __future__ import annotations

from itertools import count
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from distsim.frameworks.task import BATCH, RATE, SEED, Record, network, training_set


def train(updates: int, record: Record) -> None:
    """Trains for so many updates."""
    dist.init_process_group("gloo")
    data = training_set()
    sampler: DistributedSampler[Any] = DistributedSampler(data, seed=SEED)
    loader = DataLoader(data, BATCH, sampler=sampler)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), RATE)
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
