"""Lab 11, written differently: no_sync, an all-gather of sums, a sampler of its own, and Accelerate."""

from contextlib import nullcontext
from math import ceil

import torch
import torch.distributed as dist
from script import Epoch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def learning_rate(job):
    return job.rate / job.rate_samples * dist.get_world_size() * job.batch * job.accumulated


def evaluate(model, data, loss, batch):
    share = ceil(len(data) / dist.get_world_size())
    first = dist.get_rank() * share
    own = [data[place] for place in range(first, min(first + share, len(data)))]
    trained = model.training
    model.train(False)
    summed, right = 0.0, 0
    with torch.inference_mode():
        for start in range(0, len(own), batch):
            inputs, classes = map(torch.stack, zip(*own[start : start + batch], strict=True))
            outputs = model(inputs)
            summed += float(loss(outputs, classes)) * len(inputs)
            right += int(torch.eq(outputs.max(dim=1).indices, classes).sum())
    model.train(trained)
    mine = torch.tensor([summed, right], dtype=torch.float64)
    everybodys = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everybodys, mine)
    summed, right = torch.stack(everybodys).sum(dim=0).tolist()
    return summed / len(data), right / len(data)


def train_ddp(job):
    world, rank = dist.get_world_size(), dist.get_rank()
    wrapped = DistributedDataParallel(job.model)
    optimizer = job.optimizer(job.model.parameters(), learning_rate(job))
    generator = torch.Generator().manual_seed(11)
    rows = []
    for epoch in range(job.epochs):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(job) * job.decay**epoch
        order = torch.randperm(len(job.training), generator=generator).tolist()
        order += order[: -len(order) % world]
        own = order[rank::world]
        loader = DataLoader(job.training, batch_sampler=[own[i : i + job.batch] for i in range(0, len(own), job.batch)])
        total = 0.0
        for place, (inputs, classes) in enumerate(loader):
            complete = (place + 1) % job.accumulated == 0
            with nullcontext() if complete else wrapped.no_sync():
                loss = job.loss(wrapped(inputs), classes)
                loss.div(job.accumulated).backward()
            total += loss.item()
            if complete:
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
        told = [None] * world
        dist.all_gather_object(told, total / len(loader))
        rows.append(Epoch(sum(told) / world, *evaluate(job.model, job.test, job.loss, job.batch)))
        if rank == 0:
            job.save(wrapped.module.state_dict())
        dist.barrier()
    return rows


def train_framework(job):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=job.accumulated)
    model, optimizer, loader = accelerator.prepare(
        job.model,
        job.optimizer(job.model.parameters(), learning_rate(job)),
        DataLoader(job.training, batch_size=job.batch, shuffle=True),
    )
    rows = []
    for _ in range(job.epochs):
        losses = []
        for inputs, classes in loader:
            with accelerator.accumulate(model):
                loss = job.loss(model(inputs), classes)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
        for group in optimizer.param_groups:
            group["lr"] *= job.decay
        mean = accelerator.reduce(torch.stack(losses).mean(), "mean").item()
        plain = accelerator.unwrap_model(model)
        rows.append(Epoch(mean, *evaluate(plain, job.test, job.loss, job.batch)))
        if accelerator.is_main_process:
            job.save(plain.state_dict())
        accelerator.wait_for_everyone()
    return rows
