"""One run of a lab's pristine notebook over a tasks.py, in processes of its own, of which none is left.

The process that this module is the main program of runs the notebook through nbval. It ends, and all below it, when
the process that started it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

import distsim
from distsim.grading import confinement
from distsim.grading.lab import NOTEBOOK, TASKS, Lab
from distsim.grading.metadata import for_grading, write
from distsim.grading.notebook import RESULTS_VARIABLE
from distsim.runtime.launch import lifeline, process_tree
from distsim.runtime.launch.lifeline import RUN_VARIABLE

START_SECONDS = 120.0  # for pytest and a kernel to come up on a machine that is busy
LOOK_SECONDS = 0.05
TAIL_CHARACTERS = 2000
SETTINGS = "[pytest]\n"  # pytest looks for none further up


class StoppedError(Exception):
    """The run was given up, since somebody asked for that."""


@dataclass(frozen=True)
class Session:
    """What a run of the notebook left. noted: what `Notebook` wrote, or nothing; late: whether the deadline passed.

    said: the end of what pytest printed.
    """

    noted: dict[str, Any]
    late: bool
    said: str


def run(lab: Lab, content: bytes, *, trust: bool = False, stop: threading.Event | None = None) -> Session:
    """Runs the lab's notebook with `content` as its tasks.py, in a folder that is gone afterwards.

    trust: whether ranks may run without confinement. stop: once set, everything is ended, and StoppedError raised.
    """
    deadline = START_SECONDS + lab.about.check_seconds * len(lab.checks)
    with tempfile.TemporaryDirectory(prefix="distsim-grade-", ignore_cleanup_errors=True) as made:
        place, results = Path(made) / "work" / lab.key, Path(made) / "results" / "results.json"
        _prepare(lab, place, content)
        results.parent.mkdir()
        with (Path(made) / "said").open("w+b") as said:
            started = _started(lab, place, results, said.fileno(), trust)
            late = _watched(started, deadline, stop)
            said.seek(0)
            text = said.read().decode("utf-8", errors="replace")[-TAIL_CHARACTERS:]
        noted = json.loads(results.read_text("utf-8")) if results.is_file() else {}
    return Session(noted, late, text)


def _prepare(lab: Lab, place: Path, content: bytes) -> None:
    place.mkdir(parents=True)
    for path in lab.pristine:
        if path.name != NOTEBOOK:
            (place / path.name).write_bytes(path.read_bytes())
    write(for_grading(lab), place / NOTEBOOK)
    (place / TASKS).write_bytes(content)
    (place.parent / "pytest.ini").write_text(SETTINGS)


def _watched(
    started: AbstractContextManager[subprocess.Popen[bytes]], deadline: float, stop: threading.Event | None
) -> bool:
    """Whether the notebook was still running when its deadline passed."""
    with started as process:
        give_up = time.monotonic() + deadline
        while process.poll() is None:
            if stop is not None and stop.is_set():
                raise StoppedError
            if time.monotonic() > give_up:
                return True
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_SECONDS)
    return False


@contextmanager
def _started(lab: Lab, place: Path, results: Path, said: int, trust: bool) -> Iterator[subprocess.Popen[bytes]]:
    """The running process; it and all that carries its run's id are gone afterwards."""
    run_id, since = uuid.uuid4().hex, time.time() - 1.0
    line, held = os.pipe()
    home = str(Path(distsim.__file__).parents[1])
    paths = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {RUN_VARIABLE: run_id, RESULTS_VARIABLE: str(results), "PYTHONPATH": paths}
    environment |= confinement.environment(trust)
    for name in ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER"):
        environment.pop(name, None)
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    process = None
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "distsim.grading.session", str(place), str(lab.about.check_seconds)],
            cwd=place, env=environment, stdin=line, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
        yield process
    finally:
        try:
            process_tree.end(run_id, [process.pid] if process else [], since)
            if process is not None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
        finally:
            os.close(held)
            os.close(line)


def main(place: Path, check_seconds: float) -> int:
    """Runs the notebook in `place` through nbval; gives pytest's exit status, which decides nothing."""
    lifeline.keep(_abandon, inherit=False)
    import pytest

    _kernels_on_sockets(place.parents[1])
    return int(
        pytest.main(
            [
                "-p", "nbval.plugin", "-p", "no:cacheprovider", "-c", str(place.parent / "pytest.ini"),
                f"--rootdir={place.parent}", "--nbval-lax", "--nbval-current-env",
                f"--nbval-cell-timeout={check_seconds}", f"--nbval-kernel-startup-timeout={START_SECONDS}",
                "-q", "--tb=short", "--color=no", str(place / NOTEBOOK),
            ]
        )
    )  # fmt: skip


def _kernels_on_sockets(folder: Path) -> None:
    """Has nbval's kernel listen on sockets in `folder`.

    TCP ports, as it would by itself, are chosen before they are bound: several graders at once may choose the same.
    """
    from jupyter_client.manager import KernelManager
    from nbval import kernel

    kernel.KernelManager = partial(KernelManager, transport="ipc", connection_file=str(folder / "kernel.json"))


def _abandon() -> None:
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    os._exit(128 + signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
