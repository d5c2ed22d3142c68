"""One rank that trains a model by torch's own sharding; rank 0 prints losses and bytes. For torchrun.

python -m torch.distributed.run --nproc-per-node 2 torch_sharding.py STAGE STEPS
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from distsim.runtime.profiling.own_model import load
from distsim.runtime.ranks.task import OWN_LEARNING_RATE
from tests.runtime import sharded_models

SEED = 7


class Collective:
    """Collectives for `fully_shard`. It counts the bytes that this rank's link carries if they are rings."""

    link_bytes = 0.0

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def count(self, whole: torch.Tensor) -> None:
        Collective.link_bytes += whole.nbytes * (1 - 1 / dist.get_world_size())


class Gather(Collective):
    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, async_op: bool) -> Any:
        self.count(output_tensor)
        return dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


class Scatter(Collective):
    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False
    ) -> Any:
        self.count(input_tensor)
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op)


def held(module: nn.Module) -> int:
    """Bytes of the parameters that this rank holds between steps."""
    own = [one.to_local() if hasattr(one, "to_local") else one for one in module.parameters()]
    return sum(one.nbytes for one in own)


def main(stage: int, steps: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    own = load(f"{sharded_models.__file__}:sequence", seed=SEED)
    module: nn.Module = own.module
    optimizer: torch.optim.Optimizer
    if stage == 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer  # it warns as it is imported

        optimizer = ZeroRedundancyOptimizer(module.parameters(), torch.optim.SGD, lr=OWN_LEARNING_RATE)
    else:
        for block in module.layers:
            fully_shard(block, reshard_after_forward=stage == 3)
            block.set_custom_all_gather(Gather())
            block.set_custom_reduce_scatter(Scatter())
        fully_shard(module, reshard_after_forward=stage == 3)
        optimizer = torch.optim.SGD(module.parameters(), lr=OWN_LEARNING_RATE)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = module(*own.batch)
        loss.backward()
        if stage == 1:
            for one in module.parameters():
                dist.all_reduce(one.grad)
                one.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    if dist.get_rank() == 0:
        print(json.dumps({"losses": losses, "held": held(module), "link_bytes": Collective.link_bytes / steps}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
