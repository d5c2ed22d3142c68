"""What runs in the ranks: saves that are killed, loads in new processes, and trainings that stop and go on.

A save that is to be killed runs in a process of its own, a child of the rank. The kernel ends that child: by SIGKILL
before a call that changes files, or by SIGXFSZ in the middle of a write. The files that are left travel to the check,
and from there to another rank, which loads them.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from distsim.testbed import rank

NAME = "model.checkpoint"
CHANGES = {"os.rename", "os.remove", "os.link", "os.symlink", "os.truncate", "os.mkdir", "os.rmdir", "shutil.rmtree"}
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
OTHER_PLACE = "/dev/shm"  # another file system than that of temporary files
WRITE_SECONDS = 1.0  # of virtual time, for each call that changes files
STEP_SECONDS = 0.010
AGAIN = 7  # between the seeds of two checkpoints
MOST_STEPS = 100  # of a training that does not end
NEEDED = {"save", "load", "snapshot", "restore", "save_together", "resume"}
Files = dict[str, bytes]

# Held here, since tasks.py comes later and may put others in their place.
SYNC, FSYNC, FDATASYNC = os.sync, os.fsync, getattr(os, "fdatasync", os.fsync)
FORK, KILL, WAIT, LEAVE = os.fork, os.kill, os.waitpid, os._exit
DRAWS = (torch.rand, np.random.random, random.random)
SEEDS = (torch.manual_seed, np.random.seed, random.seed)


class Watch:
    """Sees the calls of this process that change files of one folder.

    before: is called before each of them, with its name. synced: is called after the content of a file, or the names in
    the folder, have become safe.
    """

    folder: Path | None = None
    before: Callable[[str], None] = staticmethod(lambda _name: None)
    synced: Callable[[int], None] = staticmethod(lambda _descriptor: None)
    seen = False

    def look(self, folder: Path, before: Callable[[str], None], synced: Callable[[int], None] | None = None) -> None:
        """Watches this folder from now on."""
        self.folder, self.before = folder, before
        self.synced = synced or (lambda _descriptor: None)
        if not self.seen:
            sys.addaudithook(self._hear)
        self.seen = True

    @contextmanager
    def blind(self) -> Iterator[None]:
        """What happens in here is not seen."""
        folder, self.folder = self.folder, None
        try:
            yield
        finally:
            self.folder = folder

    def sync(self, function: Callable[[int], None], descriptor: Any) -> None:
        """In the place of os.fsync and os.fdatasync."""
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        if self.folder is None:
            function(number)
            return
        self.before("fsync")
        with self.blind():
            function(number)
            self.synced(number)

    def sync_all(self) -> None:
        """In the place of os.sync: all of the folder, then its names. (A sync of the whole machine would take long.)"""
        if (folder := self.folder) is None:
            return
        self.before("sync")
        with self.blind():
            for path in [*(path for path in folder.rglob("*") if path.is_file()), folder]:
                descriptor = os.open(path, os.O_RDONLY)
                self.synced(descriptor)
                os.close(descriptor)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event == "open":
            path, _mode, flags = given
            if not (isinstance(flags, int) and flags & TO_WRITE):
                return
        elif event in CHANGES:
            path = given[0]
        else:
            return
        places = [path, given[1]] if event in ("os.rename", "os.link", "os.symlink") else [path]
        if any(self._inside(place) for place in places):
            with self.blind():
                self.before(event.removeprefix("os."))

    def _inside(self, place: Any) -> bool:
        if isinstance(place, int):  # a descriptor, as of os.ftruncate
            return True
        path = os.path.abspath(os.fsdecode(place))
        return path.startswith(f"{self.folder}{os.sep}")


watch = Watch()
os.fsync = lambda fd: watch.sync(FSYNC, fd)
os.fdatasync = lambda fd: watch.sync(FDATASYNC, fd)
os.sync = watch.sync_all


def saves(
    tasks: ModuleType, *, states: list[dict[str, Any]], beside: dict[str, Any], shares: list[float]
) -> dict[str, Any]:
    """What is left of saves that are killed: of the first save, of the second, and of one after a killed one.

    states: first, second, third. beside: a state that is saved at another path of the same folder. shares: where writes
    are cut, as shares of the file. Returns the three series. Each has the files before, and what is left of each kill.
    """
    states, beside = [made(state) for state in states], made(beside)
    with _folder() as folder:
        tasks.save(beside, folder / "other.checkpoint")
        before = files_in(folder)
        tasks.save(states[0], folder / NAME)
        first = files_in(folder)
        tasks.save(states[1], folder / NAME)
        second = files_in(folder)
        tasks.load(folder / NAME)
        open_before = _open_files()
        tasks.save(states[2], folder / NAME)
        tasks.load(folder / NAME)
        left_open = _open_files() - open_before
    series = [_killed(tasks, before, states[0], shares), _killed(tasks, first, states[1], shares)]
    torn = [one["files"] for one in series[1]["left"] if one["files"] not in (first, second)]
    series.append(_killed(tasks, torn[len(torn) // 2] if torn else first, states[2], shares))
    contents: dict[bytes, int] = {}  # a content that comes often travels once

    def known(files: Files) -> dict[str, int]:
        return {name: contents.setdefault(content, len(contents)) for name, content in files.items()}

    for rows in series:
        rows["before"] = known(rows["before"])
        for one in [*rows["left"], rows["done"]]:
            one["files"], one["powerless"] = known(one["files"]), [known(files) for files in one["powerless"]]
    return {
        "left_open": left_open,
        "series": series,
        "contents": [torch.frombuffer(bytearray(one + b"."), dtype=torch.uint8) for one in contents],
    }


def _open_files() -> int:
    gc.collect()
    return len(os.listdir("/dev/fd"))


def _killed(tasks: ModuleType, before: Files, state: dict[str, Any], shares: list[float]) -> dict[str, Any]:
    """What is left of this save, on top of the files before, for each moment at which it is killed."""
    done = _child(tasks, before, state, "after save has returned")
    longest = max((len(one) for name, one in done["files"].items() if one != before.get(name)), default=1)
    cuts = [{"limit": int(share * longest)} for share in shares] + [{"limit": longest - 1}]
    for number, name in enumerate(done["calls"]):
        cuts.append({"call": number})
        if name == "open":
            cuts += [{"call": number, "limit": limit} for limit in (0, int(shares[0] * longest))]
    left = []
    for cut in cuts:
        moment = f"at byte {cut['limit']} of a file" if "limit" in cut else "before"
        if "call" in cut:
            moment += (
                f"{', after' if 'limit' in cut else ''} call {cut['call'] + 1} on files, {done['calls'][cut['call']]}"
            )
        left.append(_child(tasks, before, state, moment, **cut))
    return {"before": before, "left": left, "done": done}


def _child(
    tasks: ModuleType, before: Files, state: dict[str, Any], moment: str, *, limit: int | None = None,
    call: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Saves in a child, which is killed. Returns the files that are left, and those that a loss of power leaves.

    call: before which call on files the child is killed; None: after `save`. limit: instead, no file gets more
    bytes from that call on (None: from the beginning on).
    """
    with _folder() as folder:
        lay_out(before, folder)
        names = _names(folder)  # the files before are safe
        contents = {number: (folder / name).read_bytes() for name, number in names.items()}
        reading, writing = os.pipe()
        if (child := FORK()) == 0:
            try:
                _save_until_killed(tasks, folder, state, writing, limit, call)
            finally:
                LEAVE(1)
        os.close(writing)
        calls, errors = [], []
        for kind, number, value in _records(reading):
            if kind == "call":
                calls.append(value)
            elif kind == "error":
                errors.append(value)
            elif kind == "names":
                names = value
            else:
                contents[number] = value
        _, status = WAIT(child, 0)
        now = _names(folder)
        return {
            "moment": moment, "error": "".join(errors), "killed": os.WIFSIGNALED(status), "calls": calls,
            "files": files_in(folder),
            "powerless": [_safe(known, contents) for known in (now, names)],
        }  # fmt: skip


def _safe(names: dict[str, int], contents: dict[int, bytes]) -> Files:
    """The files of these names, each with the content that has become safe."""
    return {name: contents.get(number, b"") for name, number in names.items()}


class Crashes:
    """What a kill or a loss of power would leave of a folder: before each call that changes its files, and in the end.

    left: the different ones.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.left = folder, list[Files]()
        self.names = _names(folder)  # the files before are safe
        self.contents = {number: (folder / name).read_bytes() for name, number in self.names.items()}

    def before(self, _name: str) -> None:
        """Before a call: it takes a second."""
        with watch.blind():
            self.note()
        rank.busy(WRITE_SECONDS, "write")

    def note(self) -> None:
        """What would be left now."""
        safe = [_safe(names, self.contents) for names in (_names(self.folder), self.names)]
        self.left += [one for one in (files_in(self.folder), *safe) if one not in self.left]

    def synced(self, descriptor: int) -> None:
        """The content of a file, or the names, have become safe."""
        number, known = os.fstat(descriptor).st_ino, _names(self.folder)
        if number == os.stat(self.folder).st_ino:
            self.names = known
        for name in (name for name, one in known.items() if one == number):
            self.contents[number] = (self.folder / name).read_bytes()


def _save_until_killed(
    tasks: ModuleType, folder: Path, state: dict[str, Any], writing: int, limit: int | None, call: int | None
) -> None:
    """The child. It tells each call on files, and what has become safe."""
    rank.context = rank.LocalContext()  # the network is the rank's
    calls = 0

    def tell(kind: str, number: int, value: object) -> None:
        told = memoryview(pickle.dumps((kind, number, value)))
        while told:
            told = told[os.write(writing, told) :]

    def bound() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit or 0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    def before(name: str) -> None:
        nonlocal calls
        if calls == call and limit is None:
            KILL(os.getpid(), signal.SIGKILL)
        if calls == call:
            bound()
        calls += 1
        tell("call", 0, name)

    def synced(descriptor: int) -> None:
        number, known = os.fstat(descriptor).st_ino, _names(folder)
        if number == os.stat(folder).st_ino:
            tell("names", 0, known)
        for name in (name for name, one in known.items() if one == number):
            tell("content", number, (folder / name).read_bytes())

    watch.look(folder, before, synced)
    if limit is not None and call is None:
        bound()
    try:
        tasks.save(state, folder / NAME)
    except BaseException as error:  # noqa: BLE001 - any error of the student's
        tell("error", 0, f"{type(error).__name__}: {error}")
    KILL(os.getpid(), signal.SIGKILL)


def _records(reading: int) -> Iterator[Any]:
    with os.fdopen(reading, "rb") as stream:
        told = io.BytesIO(stream.read())
    while told.tell() < len(told.getbuffer()):
        yield pickle.load(told)


def loads(
    tasks: ModuleType, *, folders: list[dict[str, int]], contents: list[Tensor], third: dict[str, Any]
) -> list[dict[str, Any]]:
    """What `load` gives of the files of each folder, in a process that never had the states; then after one more save.

    folders: for each name the place in `contents`, each of which has a byte more. third: the state of that save.
    """
    third = made(third)
    found = []
    for files in folders:
        with _folder() as folder:
            lay_out({name: bytes(contents[place].tolist())[:-1] for name, place in files.items()}, folder)
            one = {"state": _given(lambda folder=folder: told(tasks.load(folder / NAME)))}
            one["beside"] = _given(lambda folder=folder: told(tasks.load(folder / "other.checkpoint")))
            one["again"] = _given(lambda folder=folder: _saved_again(tasks, third, folder / NAME))
        found.append(one)
    return found


def _saved_again(tasks: ModuleType, state: dict[str, Any], path: Path) -> Any:
    tasks.save(state, path)
    return told(tasks.load(path))


def _given(call: Callable[[], Any]) -> Any:
    """What the call returns, or its error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - any error of the student's
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def made(plain: Any) -> Any:
    """A state from what the check has sent: as it is, and beside it values that cannot travel."""
    if isinstance(plain, dict) and "numbers" in plain:
        plain = {name: made(value) for name, value in plain.items()}
        plain["nested"] = {"list": [plain["numbers"] * 2, None, "text"], "tuple": (1, 2.5, True), 7: "seven"}
        plain["array"] = plain["numbers"].numpy().copy()
        plain["half"] = plain["numbers"].to(torch.bfloat16)
    return plain


def told(state: Any) -> Any:
    """A state as text and arrays, with all types."""
    if isinstance(state, Tensor):
        return ["Tensor", str(state.dtype), list(state.shape), state.detach().double().flatten().clone()]
    if isinstance(state, np.ndarray):
        return ["ndarray", str(state.dtype), list(state.shape), torch.from_numpy(state.astype("float64").ravel())]
    if isinstance(state, dict):
        return [
            "dict",
            *([told(key), told(value)] for key, value in sorted(state.items(), key=lambda one: str(one[0]))),
        ]
    if isinstance(state, list | tuple):
        return [type(state).__name__, *(told(one) for one in state)]
    return f"{type(state).__name__} {state!r}"[:1000]


def right_states(_tasks: ModuleType, *, states: list[dict[str, Any]]) -> list[Any]:
    """The states as `told`."""
    return [told(made(state)) for state in states]


@contextmanager
def _folder() -> Iterator[Path]:
    """A new folder, on another file system than that of temporary files where there is one."""
    place = OTHER_PLACE if os.access(OTHER_PLACE, os.W_OK) else None
    path = Path(tempfile.mkdtemp(dir=place)).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def files_in(folder: Path) -> Files:
    """The contents of the files of a folder, by their names in it."""
    return {name: (folder / name).read_bytes() for name in _names(folder)}


def lay_out(files: Files, folder: Path) -> None:
    """Writes the files into the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _names(folder: Path) -> dict[str, int]:
    """The names of the files of a folder, and the number that the file system gives each file."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_ino for path in found}


class Network(nn.Module):
    """Dropout draws from torch, noise from numpy, and a sign from Python. Batch normalization has buffers."""

    def __init__(self, seed: int, width: int, *, noise: bool, buffers: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, 1)
        self.normal = nn.BatchNorm1d(width) if buffers else nn.Identity()
        self.noise = noise
        generator = torch.Generator().manual_seed(seed)
        self.double()
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)

    def forward(self, inputs: Tensor) -> Tensor:
        """One number for each sample."""
        hidden = torch.tanh(self.normal(self.first(inputs)))
        if self.noise and self.training:
            hidden = hidden * (DRAWS[0](hidden.shape[1]) + 0.5) + float(DRAWS[1]())
            hidden = hidden * (1.0 + 0.5 * DRAWS[2]())
        return self.last(hidden)


def begun(
    tasks: ModuleType | None, *, seed: int, width: int, optimizer: str, noise: bool = True, buffers: bool = False
) -> Any:
    """A new training. Two groups of parameters have two rates, which the schedule changes."""
    model = Network(seed, width, noise=noise, buffers=buffers)
    groups: Any = [{"params": model.first.parameters(), "lr": 0.02}, {"params": model.last.parameters(), "lr": 0.01}]
    if optimizer == "adam":
        made_optimizer: torch.optim.Optimizer = torch.optim.Adam(groups)
        schedule: Any = torch.optim.lr_scheduler.ExponentialLR(made_optimizer, 0.8)
    else:
        made_optimizer = torch.optim.SGD(groups, momentum=0.9, nesterov=True)
        schedule = torch.optim.lr_scheduler.StepLR(made_optimizer, 5, 0.5)
    if optimizer == "sgd with warm restarts":  # this schedule counts in two ways
        schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(made_optimizer, 3, 2)
    return (Plain if tasks is None else tasks.Training)(model, made_optimizer, schedule)


@dataclass
class Plain:
    """A training where the student's file is not there."""

    model: Any
    optimizer: Any
    schedule: Any
    update: int = 0
    epoch: int = 0
    done: int = 0


def seed_all(seed: int) -> None:
    """Seeds the three generators, each with another number."""
    for number, begin in enumerate(SEEDS):
        begin(seed + number)


def _losses(training: Any, inputs: Tensor, targets: Tensor, first: int, last: int) -> list[float]:
    """The losses of these updates of one process, each in training and in evaluation."""
    losses = []
    for number in range(first, last):
        rows = slice(4 * number, 4 * number + 4)
        training.optimizer.zero_grad()
        loss = nn.functional.mse_loss(training.model(inputs[rows]), targets[rows])
        loss.backward()
        training.optimizer.step()
        training.schedule.step()
        training.model.eval()
        losses += [loss.item(), nn.functional.mse_loss(training.model(inputs[:4]), targets[:4]).item()]
        training.model.train()
    return losses


def snapshots(
    tasks: ModuleType, *, kinds: list[dict[str, Any]], seed: int, counts: list[int], inputs: Tensor, targets: Tensor,
    stop: int, end: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Trains, takes a snapshot after `stop` updates, and trains on to `end`. Returns the losses and the snapshot."""
    found = []
    for kind in kinds:
        training = begun(tasks, **kind)
        seed_all(seed)
        losses = _losses(training, inputs, targets, 0, stop)
        training.update, training.epoch, training.done = counts
        state = tasks.snapshot(training)
        losses += _losses(training, inputs, targets, stop, end)
        training.update = training.epoch = training.done = 0
        found.append({"losses": losses, "state": _bytes_of(state)})
    return found


def restores(
    tasks: ModuleType, *, kinds: list[dict[str, Any]], states: list[bytes], seed: int, inputs: Tensor, targets: Tensor,
    stop: int, end: int,
) -> list[list[dict[str, Any]]]:  # fmt: skip
    """Restores each snapshot in a new training, again when that has gone on, and in one that has made updates."""
    found = []
    for kind, content in zip(kinds, states, strict=True):
        state = torch.load(io.BytesIO(content), weights_only=False)
        training, used = begun(tasks, **kind | {"seed": seed}), begun(tasks, **kind | {"seed": seed + 1})
        _losses(used, inputs, targets, 0, 2)
        rounds = []
        for one in (training, training, used):
            parts = [one.model, one.optimizer, one.schedule, *one.model.parameters()]
            seed_all(seed + 5)
            tasks.restore(one, state)
            counts = [one.update, one.epoch, one.done]
            losses = _losses(one, inputs, targets, stop, end)
            now = [one.model, one.optimizer, one.schedule, *one.model.parameters()]
            same = len(parts) == len(now) and all(old is new for old, new in zip(parts, now, strict=True))
            rounds.append({"counts": counts, "losses": losses, "same": same})
        found.append(rounds)
    return found


def undisturbed(
    _tasks: None, *, kinds: list[dict[str, Any]], seed: int, inputs: Tensor, targets: Tensor, end: int
) -> list[list[float]]:
    """The losses of the same trainings without a snapshot."""
    found = []
    for kind in kinds:
        training = begun(None, **kind)
        seed_all(seed)
        found.append(_losses(training, inputs, targets, 0, end))
    return found


def _bytes_of(state: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def samples(tasks: ModuleType, *, cases: list[dict[str, int]], seed: int) -> list[dict[str, Any]]:
    """For each case the samples of this rank, and what the three generators draw afterwards."""
    found = []
    for case in cases:
        seed_all(seed)
        updates = tasks.updates_left(**case)
        found.append({"updates": [[int(one) for one in own] for own in updates], "drawn": _next()})
    return found


def begun_and_drawn(_tasks: None, *, kinds: list[dict[str, Any]], seeds: list[int]) -> dict[str, Any]:
    """The parameters of each new training, and what the generators draw after each seed."""
    drawn = []
    for seed in seeds:
        seed_all(seed)
        drawn.append(_next())
    return {"weights": [_weights(begun(None, **kind)) for kind in kinds], "drawn": drawn}


def _next() -> list[float]:
    """What the three generators draw next."""
    return [float(DRAWS[0](())), float(DRAWS[1]()), DRAWS[2]()]


def _weights(training: Any) -> Tensor:
    return torch.cat([one.detach().flatten() for one in training.model.parameters()])


class FailureError(BaseException):
    """What ends all ranks of a training."""


def together(
    tasks: ModuleType, *, kind: dict[str, Any], seeds: list[int], files: Files, counts: list[int]
) -> dict[str, Any]:
    """Two checkpoints, one after the other. Each call that changes files takes a second.

    seeds: of this rank's generators, for each checkpoint. files: what lies in the folder before. Returns for each
    checkpoint the files that the rank finds when `save_together` has returned, and those that it finds in the end; what
    its generators draw then; and what crashes would leave of rank 0's files, on the way and in the end.
    """
    folder = _shared(files)
    found = []
    for number, seed in enumerate(seeds):
        training = begun(tasks, **kind)
        training.update, training.epoch, training.done = counts[0] + number, *counts[1:]
        seed_all(seed)
        if number:
            dist.barrier()  # nobody saves the second before everybody has seen the first
        with watch.blind():
            crashes = Crashes(folder)
        if not dist.get_rank():
            watch.look(folder, crashes.before, crashes.synced)
        tasks.save_together(training, folder / NAME)
        with watch.blind():
            at_once = files_in(folder)
        numbers = _next()
        rank.busy(100 * WRITE_SECONDS, "wait")
        crashes.note()
        found.append({"at once": at_once, "later": files_in(folder), "drawn": numbers, "left": crashes.left})
    return {"saved": found}


def resumed(tasks: ModuleType, *, kind: dict[str, Any], seed: int, files: Files) -> dict[str, Any]:
    """What `resume` brings back from these files."""
    folder = _shared(files)
    training = begun(tasks, **kind)
    seed_all(seed)
    there = tasks.resume(training, folder / NAME)
    counts = [training.update, training.epoch, training.done]
    found = {"there": there, "counts": counts, "weights": _weights(training), "drawn": _next()}
    again = folder.parent / NAME  # what is saved now knows each of these ranks
    seed_all(seed + AGAIN)
    with watch.blind():
        tasks.save_together(training, again)
        seed_all(seed)
        tasks.resume(training, again)
    return found | {"drawn_again": _next()}


def resumed_after(tasks: ModuleType, *, kind: dict[str, Any], seed: int, left: list[Files]) -> list[dict[str, Any]]:
    """What `resume` brings back from each of these."""
    found = []
    for number, files in enumerate(left):
        folder = (Path.cwd() / f"left{number}").resolve()
        if not dist.get_rank():
            folder.mkdir()
            lay_out(files, folder)
        dist.barrier()
        training = begun(tasks, **kind)
        seed_all(seed)
        there = _given(lambda training=training, folder=folder: tasks.resume(training, folder / NAME))
        counts = [training.update, training.epoch, training.done]
        found.append({"there": there, "counts": counts, "weights": _weights(training), "drawn": _next()})
    return found


def _shared(files: Files) -> Path:
    """The folder of all ranks, with these files in it. Each call that changes its files takes a second."""
    folder = (Path.cwd() / "run").resolve()
    if not dist.get_rank():
        folder.mkdir()
        lay_out(files, folder)
    dist.barrier()
    watch.look(folder, lambda _name: rank.busy(WRITE_SECONDS, "write"))
    return folder


def trained(
    tasks: ModuleType, *, kind: dict[str, Any], seed: int, files: Files, trainings: list[list[Any]], inputs: Tensor,
    targets: Tensor, count: int, batch: int, order: int, updates: int, every: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Trainings, one after the other; each has the name of its checkpoint, and the update in whose step all ranks fail.

    files: what lies in the folder before. seed: of this rank's generators. order: the seed of the orders. Returns for
    each training the samples and the loss of each step, what `train` has returned, and the counts and files in the end.
    """
    folder = _shared(files)
    found = []
    orders = [tasks.updates_left(count, batch, order, epoch, 0) for epoch in range(1 + updates * batch // count)]
    for name, fail in trainings:
        training = begun(tasks, **kind)
        seed_all(seed)
        steps: list[dict[str, Any]] = []

        def step(own: Sequence[int], training: Any = training, steps: list[Any] = steps, fail: int = fail) -> float:
            if len(steps) >= MOST_STEPS or training.update + 1 == fail:
                raise FailureError
            loss = _step(training, inputs, targets, [int(one) for one in own])
            steps.append({"update": training.update + 1, "samples": [int(one) for one in own], "loss": loss})
            return loss

        returned = None
        with suppress(FailureError):  # the failure that this training is to have
            losses = tasks.train(training, step, count, batch, order, updates, folder / name, every)
            returned = [[int(number), float(loss)] for number, loss in losses.items()]
        dist.barrier()  # until then some rank may still save
        with watch.blind():
            files_then = files_in(folder) if dist.get_rank() == 0 else {}
        dist.barrier()
        counts = [training.update, training.epoch, training.done]
        found.append({"steps": steps, "returned": returned, "counts": counts, "files": files_then, "orders": orders})
    return found


def _step(training: Any, inputs: Tensor, targets: Tensor, own: list[int]) -> float:
    """One update of all ranks: the gradient and the loss of the mean over the samples of all."""
    model = training.model
    model.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    if own:
        total = nn.functional.mse_loss(model(inputs[own]), targets[own], reduction="sum")
        total.backward()
    parameters = list(model.parameters())
    gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in parameters]
    joined = torch.cat(
        [*(one.flatten() for one in gradients), total.detach().reshape(1), total.new_full((1,), len(own))]
    )
    rank.busy(STEP_SECONDS)
    dist.all_reduce(joined)
    joined /= joined[-1].clone()
    for parameter, part in zip(parameters, joined[:-2].split([one.numel() for one in parameters]), strict=True):
        parameter.grad = part.reshape(parameter.shape)
    training.optimizer.step()
    training.schedule.step()
    return float(joined[-2])


def intervals(tasks: ModuleType, *, cases: list[dict[str, Any]]) -> list[float]:
    """The interval of each case."""
    return [float(tasks.best_interval(**case)) for case in cases]


def real(
    tasks: ModuleType, *, run_seconds: float = 20.0, mean_seconds: float = 4.0, interval: float = 1.0,
    write_seconds: float = 0.1, restart_seconds: float = 0.1, seed: int = 0, unwritten: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """A training for real, with failures at random moments; both ranks then go back to the last checkpoint.

    A save takes the time that it takes, and `write_seconds` more. Returns the useful share of time, and the seconds of
    each save.
    """
    if NEEDED & set(unwritten):
        return {}
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    path = Path(str(folder[0])) / NAME
    drawn_times = np.random.default_rng(seed)
    kind = {"seed": 1, "width": 40, "optimizer": "sgd"}
    inputs = torch.randn(64, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    targets = inputs[:, :1].sin()
    training = begun(tasks, **kind)
    own = list(range(dist.get_rank(), 64, dist.get_world_size()))
    fails = drawn_times.exponential(mean_seconds / dist.get_world_size())
    start, worked, useful, failures = time.perf_counter(), 0.0, 0.0, 0
    saves_took = []
    while (now := _agreed(time.perf_counter() - start)) < run_seconds:
        if now > fails:
            failures += 1
            time.sleep(restart_seconds)
            training = begun(tasks, **kind)
            tasks.resume(training, path)
            worked = 0.0
            fails = _agreed(time.perf_counter() - start) + drawn_times.exponential(mean_seconds / dist.get_world_size())
            continue
        time.sleep(STEP_SECONDS)
        _step(training, inputs, targets, own)
        training.update = training.update + 1
        worked += _agreed(time.perf_counter() - start) - now
        if worked >= interval:
            before = time.perf_counter()
            time.sleep(write_seconds)
            tasks.save_together(training, path)
            saves_took.append(time.perf_counter() - before)
            if _agreed(time.perf_counter() - start) < fails:
                useful += worked
            worked = 0.0
    dist.barrier()
    if not dist.get_rank():
        shutil.rmtree(path.parent, ignore_errors=True)
    return {"useful": useful / now, "failures": failures, "save_seconds": saves_took}


def _agreed(seconds: float) -> float:
    """Rank 0's time, on all ranks."""
    told_time = torch.tensor(seconds, dtype=torch.float64)
    dist.broadcast(told_time, 0)
    return float(told_time)
