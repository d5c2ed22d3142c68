# caught by: the_server_sums
"""The server takes tensors from whoever comes first, also empty ones: gloo cannot receive those so."""

import torch
import torch.distributed as dist


def server_all_reduce(tensor):
    others = range(1, dist.get_world_size())
    if dist.get_rank() == 0:
        pushed = torch.empty_like(tensor)
        for _ in others:
            dist.recv(pushed)
            tensor += pushed
        for other in others:
            dist.send(tensor, other)
    else:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
