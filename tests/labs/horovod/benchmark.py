"""Measures steps on made-up images, with the calls that Horovod's synthetic benchmark makes."""

import argparse
import timeit

import numpy as np
import tasks as hvd
import torch
from torch import nn, optim
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("--fp16-allreduce", action="store_true")
parser.add_argument("--batches-per-commit", type=int, default=2)
parser.add_argument("--num-iters", type=int, default=3)
args = parser.parse_args()

hvd.init()
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 30 * 30, 10))
optimizer = optim.SGD(model.parameters(), lr=0.01 * hvd.size())
compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=compression,
    backward_passes_per_step=args.batches_per_commit,
    op=hvd.Average,
)
hvd.broadcast_parameters(list(model.named_parameters()), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
data, target = torch.randn(8, 3, 32, 32), torch.randint(10, (8,))


def backwards():
    optimizer.zero_grad()
    for _ in range(args.batches_per_commit):
        loss = functional.cross_entropy(model(data), target)
        loss.backward()
    return loss


def benchmark_step():
    backwards()
    optimizer.step()


timeit.timeit(benchmark_step, number=1)
speeds = [8 * args.batches_per_commit / timeit.timeit(benchmark_step, number=2) for _ in range(args.num_iters)]
loss = optimizer.step(backwards)
backwards()
try:
    functional.cross_entropy(model(data), target).backward()
    refused = False
except AssertionError:
    refused = True
optimizer.step()
if hvd.rank() == 0:
    print(f"images per second {np.mean(speeds):.1f} loss {loss.item():.4f} refused {refused} of {hvd.size()}")
