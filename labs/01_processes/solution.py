"""Lab 01: several processes run this one file. Who does what?

Every function below is called by every process (rank). Fill them in; `distsim lab run 01` starts four of them for real.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist


def start(backend: str) -> tuple[int, int]:
    """Joins the process group and returns this process's rank and the world size.

    The launcher has set the environment variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: where the processes
    meet is its choice, and `backend` is the caller's.
    """
    # write
    dist.init_process_group(backend)
    return dist.get_rank(), dist.get_world_size()
    # end


def own_device() -> torch.device:
    """Returns this process's GPU, by its number on its own machine (LOCAL_RANK), or the CPU where there is none."""
    # write
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return torch.device("cpu")
    # end


def own_samples(count: int) -> list[int]:
    """Returns which of the samples 0 to count - 1 are this rank's: each sample is one rank's, and shares are even.

    Shares are even: the numbers of samples of any two ranks differ by at most one.
    """
    # write
    return list(range(dist.get_rank(), count, dist.get_world_size()))
    # end


def fetch(path: Path, download: Callable[[Path], None]) -> bytes:
    """Has rank 0 alone call `download(path)`, and returns the file's content on every rank.

    The ranks share the folder. A download takes its time, and until it is over the file is not whole. A file that is
    there before may be old, or half a file: it is downloaded again. It may be downloaded under another name
    first, but in the end it is at `path`.
    """
    # write
    if dist.get_rank() == 0:
        download(path)
    dist.barrier()
    return path.read_bytes()
    # end


def same_start(build: Callable[[], torch.nn.Module], seed: int) -> torch.nn.Module:
    """Builds the model with the same parameters on every rank, and then gives each rank random numbers of its own.

    The seed decides the parameters: the same seed gives the same ones again, and another seed gives others. `build()`
    draws its initial parameters from torch, numpy and random. What a rank draws afterwards, from any of the three (say
    for dropout, or to augment its samples), must differ from what the others draw.
    """
    # write
    _seed_all(seed)
    model = build()
    _seed_all(seed + 1 + dist.get_rank())
    return model
    # end


# write
def _seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the generator that models and libraries share
    random.seed(seed)


# end
def save(state: dict[str, Any], path: Path, write: Callable[[dict[str, Any], Path], None]) -> None:
    """Has rank 0 alone call `write(state, path)`, and returns on every rank when the file is whole.

    Writing takes its time too. A rank that went on at once could read half a checkpoint. An older checkpoint at `path`
    is written over. It may be written under another name first, but in the end it is at `path`.
    """
    # write
    if dist.get_rank() == 0:
        write(state, path)
    dist.barrier()
    # end


def mean_loss(loss: float) -> float:
    """Returns the mean of all ranks' losses, the same on every rank.

    The same to the last digit: ranks that stop training at some loss must stop together. Every loss counts, also 0 and
    nan: if one rank's loss is nan, so is the mean.
    """
    # write
    total = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(total)
    return float(total) / dist.get_world_size()
    # end
