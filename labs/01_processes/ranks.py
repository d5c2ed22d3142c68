"""What runs in the ranks: it calls the student's functions, and hands back what they gave."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from distsim.testbed import rank

# Held here, since tasks.py comes later and may put others in their place.
BEGINNINGS = (torch.manual_seed, np.random.seed, random.seed)
REAL_DEVICE = torch.device
DRAWS = {"torch": torch.rand, "numpy": np.random.random, "random": random.random}


def start(tasks: ModuleType, *, backend: str, secret: int) -> dict[str, Any]:
    """The rank and world size that `start` gives, and the secrets of the ranks that then meet in a collective."""
    number, world = tasks.start(backend)
    met = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(met, torch.tensor([secret]))
    return {"rank": number, "world": world, "met": torch.cat(met)}


def own_device(tasks: ModuleType, *, gpus: int, local_rank: int) -> dict[str, Any]:
    """The device on a machine that seems to have so many GPUs."""
    os.environ["LOCAL_RANK"] = str(local_rank)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(4 + number) for number in range(gpus))  # of more than it sees
    torch.cuda.is_available = lambda: gpus > 0  # type: ignore[assignment]
    torch.cuda.device_count = lambda: gpus  # type: ignore[assignment]
    torch.cuda.set_device = lambda _device: None  # type: ignore[assignment]
    torch.device = Device  # type: ignore[assignment, misc]
    return {"device": str(torch.device(tasks.own_device()))}


class _SeemingDevice(type):
    """What makes `torch.device(1)` a GPU, as on a machine that has some."""

    def __call__(cls, given: Any, *more: Any) -> Any:
        return REAL_DEVICE("cuda", given) if isinstance(given, int) else REAL_DEVICE(given, *more)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, REAL_DEVICE)


class Device(metaclass=_SeemingDevice):
    """In the place of `torch.device`."""


def own_samples(tasks: ModuleType, *, counts: list[int]) -> list[list[int]]:
    """The samples of this rank, for each count. Each list is used up before the next call."""

    def used_up(samples: list[int]) -> list[int]:
        taken = [int(sample) for sample in samples]
        if isinstance(samples, list):
            samples.clear()
        return taken

    return [used_up(tasks.own_samples(count)) for count in counts]


def fetch(tasks: ModuleType, *, contents: list[bytes], files: int, seconds: float, late: float) -> list[list[bytes]]:
    """What each call brings, of so many files in turn, and what is in the file then.

    A download takes its seconds, and writes in two halves. late: how many seconds this rank computes before each call
    but the first.
    """

    def one(number: int, content: bytes) -> list[bytes]:
        def download(path: Path) -> None:
            _write_slowly(Path(path), content, seconds, "download")

        rank.busy(late if number else 0.0)
        path = Path(f"data{number % files}")
        return [bytes(tasks.fetch(path, download)), path.read_bytes() if path.is_file() else b"nothing"]

    return [one(number, content) for number, content in enumerate(contents)]


def same_start(tasks: ModuleType, *, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each call, the model's parameters, and what the three generators draw next."""
    return [_started(tasks, **call) for call in calls]


def _started(tasks: ModuleType, *, seed: int, secret: float, state: int) -> dict[str, Any]:
    """state: in which all generators are before. The last of the parameters is the secret."""

    def build() -> torch.nn.Module:
        model = torch.nn.Linear(4, 3)
        with torch.no_grad():
            model.bias[0] = float(np.random.normal())  # noqa: NPY002 - a model that uses numpy's shared generator
            model.bias[1] = DRAWS["random"]()
            model.bias[2] = secret
        model.bias.requires_grad_(requires_grad=False)  # frozen parameters are parameters too
        return model

    for begin in BEGINNINGS:
        begin(state)
    model = tasks.same_start(build, seed)
    return {
        "parameters": torch.cat([parameter.detach().flatten() for parameter in model.parameters()]),
        "torch": DRAWS["torch"](3),
        "numpy": DRAWS["numpy"](3),
        "random": [DRAWS["random"]() for _ in range(3)],
    }


def save(
    tasks: ModuleType, *, states: list[dict[str, float]], files: int, seal: bytes, seconds: float, late: float
) -> list[list[bytes]]:
    """What stands in each of so many files, in turn, when `save` has returned; `write` puts its seal before the state.

    late: as in `fetch`.
    """

    def write(state: dict[str, Any], path: Path) -> None:
        _write_slowly(Path(path), seal + repr(state).encode(), seconds, "write")

    found = []
    for number, state in enumerate(states):
        path = Path(f"checkpoint{number % files}")
        rank.busy(late if number else 0.0)
        tasks.save(state, path, write)
        found.append([path.read_bytes() if path.is_file() else b""])
    return found


def mean_loss(tasks: ModuleType, *, losses: list[float]) -> list[float]:
    """The mean that this rank was given of each loss."""
    return [float(tasks.mean_loss(loss)) for loss in losses]


def real(tasks: ModuleType, seconds: list[list[float]], unwritten: Sequence[str] = ()) -> dict[str, Any]:
    """Steps for real: each rank computes for its seconds of the step, then all take their mean loss."""
    if "mean_loss" in unwritten:
        return {}
    own = seconds[dist.get_rank()]
    tasks.mean_loss(0.0)  # the first exchange also connects the ranks
    times = [rank.now()]
    for one in own:
        rank.busy(one)
        tasks.mean_loss(one)
        times.append(rank.now())
    return {"step_seconds": [later - earlier for earlier, later in itertools.pairwise(times)]}


def _write_slowly(path: Path, content: bytes, seconds: float, kind: str) -> None:
    half = len(content) // 2
    path.unlink(missing_ok=True)  # a new file, not new content of the old one
    with path.open("wb") as file:
        file.write(content[:half])
        file.flush()
        rank.busy(seconds, kind)
        file.write(content[half:])
