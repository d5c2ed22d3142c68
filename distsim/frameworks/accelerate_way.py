"""The training with Accelerate: it wraps model and optimizer. The script keeps its loop and, here, its own sampler.

`prepare(loader)` would deal whole batches to the ranks in turn, so each rank would see other samples than with
DistributedSampler. The loader is therefore not given to it.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler

from distsim.frameworks.task import BATCH, RATE, SEED, Record, network, training_set


def train(updates: int, record: Record) -> None:
    """Trains for so many updates."""
    accelerator = Accelerator(cpu=True)
    data = training_set()
    sampler: DistributedSampler[Any] = DistributedSampler(data, seed=SEED)
    loader = DataLoader(data, BATCH, sampler=sampler)
    model = network()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), RATE))
    for epoch in count():
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            record.update(loss)
            if len(record.losses) == updates:
                record.finish(model)
                accelerator.end_training()  # ends the group, too
                return
