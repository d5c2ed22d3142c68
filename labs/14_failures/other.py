"""Lab 14, written differently: two files in turn with their hashes, orders by torch, the exact interval."""

import hashlib
import io
import os
import pickle
import random
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy
import torch
import torch.distributed as dist


@dataclass
class Training:
    model: Any
    optimizer: Any
    schedule: Any
    update: int = 0
    epoch: int = 0
    done: int = 0


def save(state, path):
    old = {slot: found_in(path, slot) for slot in (0, 1)}
    number = max(found[0] for found in old.values())
    slot = 0 if old[0][0] < old[1][0] or number < 0 else 1
    content = pickle.dumps((number + 1, state))
    descriptor = os.open(f"{path}.{slot}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    view = memoryview(hashlib.sha256(content).digest() + content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fdatasync(descriptor)
    os.close(descriptor)
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def found_in(path, slot):
    try:
        with open(f"{path}.{slot}", "rb") as file:
            digest, content = file.read(32), file.read()
    except FileNotFoundError:
        return -1, None
    if hashlib.sha256(content).digest() != digest:
        return -1, None
    return pickle.loads(content)


def load(path):
    return max((found_in(path, slot) for slot in (0, 1)), key=lambda found: found[0])[1]


def snapshot(training):
    buffer = io.BytesIO()
    parts = (training.model, training.optimizer, training.schedule)
    torch.save([part.state_dict() for part in parts], buffer)
    counts = {name: getattr(training, name) for name in ("update", "epoch", "done")}
    return {"parts": buffer.getvalue(), **counts, "drawn": drawn()}


def drawn():
    return torch.default_generator.get_state(), numpy.random.get_state(), random.getstate()  # noqa: NPY002


def restore(training, state):
    loaded = torch.load(io.BytesIO(state["parts"]), weights_only=False)
    for part, one in zip((training.model, training.optimizer, training.schedule), loaded):
        part.load_state_dict(one)
    for name in ("update", "epoch", "done"):
        setattr(training, name, state[name])
    of_torch, of_numpy, of_python = state["drawn"]
    torch.default_generator.set_state(of_torch)
    numpy.random.set_state(of_numpy)  # noqa: NPY002
    random.setstate(of_python)


def updates_left(count, batch, seed, epoch, done):
    generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    order = torch.randperm(count, generator=generator)[done:]
    if not len(order):
        return []
    return [part.tensor_split(dist.get_world_size())[dist.get_rank()].tolist() for part in order.split(batch)]


def save_together(training, path):
    own = snapshot(training)
    gathered = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(own["drawn"], gathered)
    told = [None]
    if gathered is not None:
        save(OrderedDict(own, drawn=dict(enumerate(gathered))), path)
        told = ["saved"]
    dist.broadcast_object_list(told)


def resume(training, path):
    state = load(path)
    if state is not None:
        restore(training, dict(state, drawn=state["drawn"].get(dist.get_rank()) or drawn()))
    return state is not None


def train(training, step, count, batch, seed, updates, path, every):
    resume(training, path)
    made = []
    while training.update < updates:
        if training.done >= count:
            training.epoch += 1
            training.done = 0
        own = updates_left(count, batch, seed, training.epoch, training.done)[0]
        made.append((training.update + 1, step(own)))
        training.done = min(count, training.done + batch)
        training.update += 1
        if not training.update % every:
            save_together(training, path)
    return dict(made)


def best_interval(write_seconds, mean_seconds, ranks):
    cost = write_seconds * ranks / mean_seconds
    below, above = 0.0, 1.0
    for _ in range(60):
        middle = (below + above) / 2
        if (1 - middle) * numpy.exp(middle + cost) > 1:
            below = middle
        else:
            above = middle
    return below * mean_seconds / ranks
