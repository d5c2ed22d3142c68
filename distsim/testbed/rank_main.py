"""A rank's main function: it starts torch.distributed, runs a driver, and sends the driver's result back."""

from __future__ import annotations

import importlib.util
import inspect
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.random  # here, and not at its first use in each rank
import torch
import torch.distributed as dist

from distsim.testbed import frames, process_group, rank
from distsim.testbed.rank_process import flush_streams
from distsim.testbed.rendezvous import MEETING_PLACE, Rendezvous
from distsim.testbed.switch_client import STUDENT_FILE, SwitchClient

DRIVERS_FILE = "ranks.py"
ON_A_MACHINE = 2  # ranks are numbered as if on machines of two, so that a rank and its LOCAL_RANK differ
LONGEST_TOLD = 10_000
TELL_AGAIN_SECONDS = 4.0
STAY_SECONDS = 5.0  # after that, gloo tells ranks that still wait for this one that it is gone


@dataclass(frozen=True)
class RankTask:
    """The task of one rank: call `function` of the drivers with `arguments`.

    backend: "testbed", or "gloo" with its store in the working folder. start: whether torch.distributed is started for
    the rank; otherwise the student's code starts it. tell_seconds: real time after which the rank tells its line, now
    and then.
    """

    function: str
    arguments: dict[str, Any]
    rank: int
    world: int
    backend: str
    start: bool
    student: bool
    tell_seconds: float


def run_rank(channel: socket.socket) -> None:
    """Carries out the task that comes over the channel. The current folder holds the drivers and the student's file.

    The task comes to this process alone: no other rank, and no process that it was forked from, has held it.
    """
    task = RankTask(**frames.receive(channel))
    line = SwitchClient(channel)
    signal.signal(signal.SIGALRM, lambda _number, frame: line.tell_place(frame))
    signal.setitimer(signal.ITIMER_REAL, task.tell_seconds, TELL_AGAIN_SECONDS)
    doing = ""
    try:
        _prepare(task, line)
        drivers = _module("ranks", Path(DRIVERS_FILE))  # first: the student's code cannot change its imports
        doing = f"{STUDENT_FILE} cannot be imported: "
        tasks = _module("tasks", Path(STUDENT_FILE), hash=_salted_hash(task.rank)) if task.student else None
        doing = ""
        value = getattr(drivers, task.function)(tasks, **_tensors(task.arguments))
        _finish(line, do="result", value=_arrays(value))
    except BaseException as error:  # noqa: BLE001 - every error, also SystemExit, is reported to the parent
        _finish(line, do="error", text=doing + _told(error), where=_where(error))
        return
    if task.backend != process_group.NAME:
        line.stay(STAY_SECONDS)  # the end of the process would drop messages in flight


def _finish(line: SwitchClient, **last: Any) -> None:
    """Sends the last message. What the rank has printed comes first: after its last message nobody reads on."""
    flush_streams()
    line.finish(**last)


def _prepare(task: RankTask, line: SwitchClient) -> None:
    torch.set_num_threads(1)
    random.seed(task.rank)
    np.random.seed(task.rank)  # noqa: NPY002 - each rank has its own seed, as separate processes have
    torch.default_generator.manual_seed(1000 + task.rank)  # not that of GPUs, which takes longer and is not there
    local = task.rank % ON_A_MACHINE
    beside = min(ON_A_MACHINE, task.world - task.rank + local)  # fewer on the last machine where the ranks are odd
    os.environ.update(
        {
            "RANK": str(task.rank), "LOCAL_RANK": str(local), "WORLD_SIZE": str(task.world),
            "LOCAL_WORLD_SIZE": str(beside), **MEETING_PLACE,
        }
    )  # fmt: skip
    Rendezvous(task.backend, task.rank, task.world).replace_torchs()
    if task.backend == process_group.NAME:
        process_group.register(line)
        rank.context = line
        time.sleep = partial(_sleep, line, time.sleep)
        time.perf_counter = time.monotonic = time.time = line.now
    if task.start:
        dist.init_process_group()


def _sleep(line: SwitchClient, really: Callable[[float], None], seconds: float) -> None:
    """Lets virtual time pass for the rank; a further thread, such as that of a progress bar, sleeps beside it."""
    if threading.current_thread() is threading.main_thread():
        line.busy(seconds)
    else:
        really(seconds)


def _salted_hash(salt: int) -> Callable[[object], int]:
    """Python's `hash` as another process has it: each process salts strings anew, but forked ranks share their salt."""

    def salted(value: object) -> int:
        if isinstance(value, str | bytes):
            return hash((salt, value))
        return hash(tuple(map(salted, value))) if type(value) is tuple else hash(value)

    return salted


def _module(name: str, path: Path, **names: object) -> ModuleType:
    """The file as a module, which finds the names given as if they were built in."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    vars(module).update(names)
    spec.loader.exec_module(module)
    return module


def _tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        tensor = torch.from_numpy(value)
        return tensor if value.size else torch.empty_like(tensor, memory_format=torch.contiguous_format)
    if isinstance(value, dict):
        return {key: _tensors(item) for key, item in value.items()}
    return [_tensors(item) for item in value] if isinstance(value, list) else value


def _arrays(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().contiguous().numpy()
    if isinstance(value, dict):
        return {key: _arrays(item) for key, item in value.items()}
    return [_arrays(item) for item in value] if isinstance(value, list | tuple) else value


def _told(error: BaseException) -> str:
    """One line about an error, also if the student's `__str__` or `__repr__` fails."""
    try:
        if isinstance(error, SystemExit):
            text = f"sys.exit({error.code!r}) was called"
        else:
            text = "".join(traceback.format_exception_only(error)).strip()
        lines = text[:LONGEST_TOLD].encode(errors="backslashreplace").decode().splitlines()
    except Exception as another:  # noqa: BLE001 - an error of the student's own method
        lines = [f"an error that cannot be printed: {type(another).__name__}"]
    return (lines or ["an error without a name"])[-1 if isinstance(error, SyntaxError) else 0]


def _where(error: BaseException) -> str:
    """The innermost line of the student's file in the error's traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    lines = [
        f"{STUDENT_FILE}:{number} in {frame.f_code.co_name}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if Path(inspect.getfile(frame)).name == STUDENT_FILE
    ]
    return lines[-1] if lines else ""
