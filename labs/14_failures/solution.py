"""Lab 14: a training that survives failures: checkpoints that are always whole, and a restart with the same losses.

`save`, `load`, `snapshot`, `restore`, `updates_left` and `best_interval` work in one process, without a message. The
ranks call `save_together`, `resume` and `train` together.
"""

from __future__ import annotations

import copy
import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist


@dataclass
class Training:
    """A training that is on its way. Its script builds it anew in each process; `resume` then brings it up to date.

    schedule: sets the learning rates of the optimizer. update: how many updates have been made. epoch: the number of
    the epoch, from 0. done: how many samples of the epoch have been used.
    """

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    update: int = 0
    epoch: int = 0
    done: int = 0


def save(state: dict[str, Any], path: Path) -> None:
    """Saves the state at `path`, so that `load` always gives a whole state: the one before, or the new one.

    state: tensors, numpy arrays, numbers, texts and None, in dicts, lists and tuples. It stays as it is. The folder of
    `path` exists. Calls of `save` do not overlap. There may be thousands of them, so each closes what it opens.

    A process may be killed (SIGKILL) at any moment of `save`, also in the middle of a write. Afterwards, `load(path)`
    in a new process gives what the last complete `save` has saved, or the new state, whole. Once `save` has returned,
    `load` gives the new state. Files that a killed `save` has left do no harm: the next `save` works, and only a state
    that was saved whole is loaded.

    All that also holds if the machine loses power. Then a file may have the content that it had at its last `os.fsync`
    (none if there was no `os.fsync`) in place of what was written later. What is still in Python's buffers is not part
    of that content. The names in the folder (of new, renamed and removed files) become safe by `os.fsync` of the
    folder. Changes of names since then may be lost, all together, or none of them.

    Other checkpoints lie in the same folder, and they stay as they are. So the name of each file that you write begins
    with the name of `path`. All your files lie in this folder: it may be on another file system than the folder for
    temporary files.
    """
    # write
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    # end


def load(path: Path) -> dict[str, Any] | None:
    """Returns the state that was saved at `path` (see `save`), or None if there is none.

    Values have the same types, shapes and numbers as when they were saved. `torch.load` refuses numpy arrays unless it
    is told `weights_only=False`; a checkpoint of one's own may be trusted.
    """
    # write
    if not path.is_file():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=False)
    return state
    # end


def snapshot(training: Training) -> dict[str, Any]:
    """Returns all that a process needs to go on as if it had never stopped, as a state that `save` can save.

    That is: the model with its buffers, the optimizer, the schedule, the three counts of the training, and the states
    of three generators: torch's, numpy's (`np.random`) and Python's (`random`). The snapshot changes nothing, and draws
    nothing. It is a copy: when the training goes on, the snapshot stays as it is.
    """
    # write
    generators = {
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),  # noqa: NPY002 - the generator that models and libraries share
        "python": random.getstate(),
    }
    parts: dict[str, Any] = {"model": training.model, "optimizer": training.optimizer, "schedule": training.schedule}
    state = {name: part.state_dict() for name, part in parts.items()}
    counts = (training.update, training.epoch, training.done)
    return copy.deepcopy({**state, "counts": counts, "generators": generators})
    # end


def restore(training: Training, state: dict[str, Any]) -> None:
    """Brings the training, and the three generators, into the state that `snapshot` has returned.

    The training was built anew, or has made updates of its own. Its model stays the same object, and so do its
    optimizer, its schedule and its parameters: others hold them, too. `state` stays as it is, also when the training
    goes on: the same state can be restored again.
    """
    # write
    state = copy.deepcopy(state)
    training.model.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    training.schedule.load_state_dict(state["schedule"])
    training.update, training.epoch, training.done = state["counts"]
    torch.set_rng_state(state["generators"]["torch"])
    np.random.set_state(state["generators"]["numpy"])  # noqa: NPY002
    random.setstate(state["generators"]["python"])
    # end


def updates_left(count: int, batch: int, seed: int, epoch: int, done: int) -> list[list[int]]:
    """Returns this rank's samples in the updates that are left of an epoch: for each update a list.

    An epoch has the samples 0 to count - 1, in a random order. The order depends on `count`, `seed` and `epoch` alone:
    not on the rank, the number of ranks, or earlier calls. Another epoch has another order, and so has another seed.
    Each update takes the next `batch` samples of the order, whatever the number of ranks; the last update takes the
    samples that are left. done: so many samples of the order have been used, `count` at most. They do not come again.

    Within an update, any two ranks have equally many samples, or one has one more than the other. Which rank takes
    which is free. A rank without a sample has an empty list there. The global generators (torch's, numpy's and
    Python's) stay as they are, and nothing goes over the network.
    """
    # write
    order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
    ranks = dist.get_world_size()
    return [order[first : first + batch][dist.get_rank() :: ranks] for first in range(done, count, batch)]
    # end


def save_together(training: Training, path: Path) -> None:
    """Saves one checkpoint of a training on all ranks; returns on every rank when the checkpoint is complete.

    The ranks share the folder of `path`. Rank 0 alone writes, in the way of `save`. On all ranks the model, the
    optimizer, the schedule and the counts are the same. The generators differ from rank to rank: the checkpoint has
    those of every rank.
    """
    # write
    own = snapshot(training)
    everybodys: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, own.pop("generators"))
    if dist.get_rank() == 0:
        save({**own, "everybodys": everybodys}, path)
    dist.barrier()
    # end


def resume(training: Training, path: Path) -> bool:
    """Restores the checkpoint of `save_together` on every rank. Returns whether there is one.

    Each rank gets back its own generators. There may be more or fewer ranks than before. A rank whose number the
    checkpoint does not know keeps the generators that it has now. No rank writes. If there is no checkpoint, everything
    stays as it is.
    """
    # write
    state = load(path)
    if state is None:
        return False
    everybodys = state.pop("everybodys")
    known = dist.get_rank() < len(everybodys)
    generators = everybodys[dist.get_rank()] if known else snapshot(training)["generators"]
    restore(training, {**state, "generators": generators})
    return True
    # end


def train(
    training: Training, step: Callable[[Sequence[int]], float], count: int, batch: int, seed: int, updates: int,
    path: Path, every: int,
) -> dict[int, float]:  # fmt: skip
    """Trains until `updates` updates have been made, and goes on from the checkpoint at `path` if there is one.

    step(own): makes one update together with all ranks. own: this rank's samples of the update, perhaps none. It
    exchanges gradients, calls `optimizer.step` and `schedule.step`, and returns the loss. It does not change the counts
    of the training: you do. Each epoch's updates are those of `updates_left`. Training may end in the middle of an
    epoch.

    After each update whose number is a multiple of `every`, `save_together` saves a checkpoint at `path`; the first
    update has number 1. No other checkpoints are saved. A failure may end all ranks in any `step`. When `train` is
    called again, also with another number of ranks, it repeats only the updates since the last checkpoint.

    Returns the losses of the updates that this call has made, by the number of the update.
    """
    # write
    resume(training, path)
    losses: dict[int, float] = {}
    while training.update < updates:
        left = updates_left(count, batch, seed, training.epoch, training.done)
        for own in left[: updates - training.update]:
            loss = step(own)
            training.update += 1
            training.done = min(training.done + batch, count)
            losses[training.update] = loss
            if training.done == count:
                training.epoch, training.done = training.epoch + 1, 0
            if training.update % every == 0:
                save_together(training, path)
    return losses
    # end


def best_interval(write_seconds: float, mean_seconds: float, ranks: int) -> float:
    """Returns how many seconds to work between two checkpoints, so that the most work is done in the long run.

    Saving a checkpoint takes `write_seconds`, above 0; nobody works meanwhile. Each rank fails after an exponential
    time with mean `mean_seconds`, at any time, also during a checkpoint. A failure of one rank stops all ranks: work
    since the last complete checkpoint is lost. Then all ranks go on.

    The useful share of time must be within 1 % of the best one. Saving may take far less time than it takes until some
    rank fails, or as much, or more.
    """
    # write
    mean = mean_seconds / ranks
    ratio = write_seconds / (2 * mean)
    if ratio >= 1:
        return mean
    root = math.sqrt(ratio)
    return 2 * mean * root * (1 + root / 3 + ratio / 9) - write_seconds
    # end
