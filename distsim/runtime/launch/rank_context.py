"""Prepares a rank before its own program: a lifeline, a status slot, a stack dump and a failure record.

A rank's script looks like this:

    from distsim.runtime.launch import rank_context

    with rank_context.entered() as context:
        import torch
        context.slot.doing("its own work")
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from distsim.errors import InputError
from distsim.files import write_text
from distsim.runtime.emulation import coordination
from distsim.runtime.launch import lifeline
from distsim.runtime.launch.node import take_rank
from distsim.runtime.launch.rank_output import output_pipe
from distsim.runtime.recording.rank_status import StatusSlot

FOLDER_VARIABLE = "DISTSIM_FOLDER"  # the run's folder
JOB_FILE = "job.json"
STACK_SIGNAL = getattr(signal, "SIGUSR1", signal.SIGTERM)  # ranks need Unix, importing this file does not
# Words of gloo and NCCL when another rank has gone: the error follows from a failure and is not its cause.
CONSEQUENCES = (
    "Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused", "timed out",
    "Timed out", "Socket closed", "recvValue failed", "Connection was likely closed", "failed to recv", "not connected",
    "gloo/transport", "remote process exited",
)  # fmt: skip
# Kept free from the start for the record of a failure, since the failure may be a full disk.
RESERVE_BYTES = 32 * 1024
# Delay of a rank that fails because another rank has gone, so that torchrun sees the other rank first.
LINGER_SECONDS = 1.0


@dataclass(frozen=True)
class RankContext:
    """A rank in its run. folder: the run's folder; job: the rank's task; slot: shows the rank's activity."""

    rank: int
    folder: Path
    job: dict[str, Any]
    slot: StatusSlot


def stacks_file(folder: Path, rank: int) -> Path:
    """The file into which rank `rank` writes its Python stacks when it gets STACK_SIGNAL."""
    return folder / f"stacks-{rank}.txt"


def failure_file(folder: Path, rank: int) -> Path:
    """The file into which rank `rank` writes how it failed."""
    return folder / f"failure-{rank}.json"


def reserve(file: Path) -> None:
    """Reserves space on the disk for the record of a failure. `use_reserve` frees the space."""
    file.write_bytes(bytes(RESERVE_BYTES))


def use_reserve(file: Path) -> None:
    """Frees the reserved space, right before the record is written."""
    file.unlink(missing_ok=True)


def restarts() -> bool:
    """Whether torchrun starts the ranks again when one fails."""
    return os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"


def _reserve_file(folder: Path, rank: int) -> Path:
    return folder / f"reserve-{rank}"


@contextmanager
def entered() -> Iterator[RankContext]:
    """Makes this process the rank that torchrun's environment names. Errors are recorded, and the process ends."""
    rank, folder = take_rank(), Path(os.environ[FOLDER_VARIABLE])
    coordination.enter_host(rank)
    lifeline.keep(_end_group, inherit=False)
    _redirect_output(folder, rank)
    slot = StatusSlot(folder, rank)
    reserve(_reserve_file(folder, rank))
    with stacks_file(folder, rank).open("w") as stacks:
        faulthandler.enable()
        faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=True)
        slot.begin()
        threading.excepthook = lambda error: _fail(folder, rank, error.exc_value or SystemExit(1))
        try:
            yield RankContext(rank, folder, json.loads((folder / JOB_FILE).read_text("utf-8")), slot)
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt end a rank as well
            _fail(folder, rank, error)
        slot.finished()
        end(0)


def _end_group() -> None:
    """Ends this rank and the processes that it started, since the launching process is gone."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _redirect_output(folder: Path, rank: int) -> None:
    if output_pipe(folder, str(rank)).exists():
        pipe = os.open(output_pipe(folder, str(rank)), os.O_WRONLY)
        os.dup2(pipe, 1)
        os.dup2(pipe, 2)
        os.close(pipe)


def end(code: int) -> NoReturn:
    """Ends the process at once. An orderly end of torch takes a quarter of a second, and threads could delay it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _fail(folder: Path, rank: int, error: BaseException) -> NoReturn:
    """Records the failure and ends the process."""
    moment = time.monotonic()
    consequence = isinstance(error, RuntimeError) and any(words in str(error) for words in CONSEQUENCES)
    record = {
        "rank": rank,
        "seconds": moment,
        "kind": type(error).__name__,
        "text": str(error),
        "input": isinstance(error, InputError),
        "consequence": consequence,
        "traceback": "".join(traceback.format_exception(error)),
        "frames": [[frame.filename, frame.lineno, frame.name] for frame in traceback.extract_tb(error.__traceback__)],
    }
    if consequence and restarts():
        time.sleep(LINGER_SECONDS)  # torchrun usually ends this rank here, and starts all ranks again
    use_reserve(_reserve_file(folder, rank))
    write_text(failure_file(folder, rank), json.dumps(record))
    if consequence:
        time.sleep(LINGER_SECONDS)
    end(error.code if isinstance(error, SystemExit) and isinstance(error.code, int) and error.code else 1)
