"""Runs a lab's own notebook with a given tasks.py, in separate processes that end with the run.

As a main program, this module runs the notebook through nbval. Its process and all child processes end when the
parent process ends.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from distsim.grading.lab import NOTEBOOK, TASKS, Lab
from distsim.grading.metadata import for_grading, write
from distsim.grading.notebook import RESULTS_VARIABLE, SEED_VARIABLE, SERVER_VARIABLE
from distsim.grading.trust import trust_variables
from distsim.progress import Phase, Report
from distsim.runtime.launch import lifeline, process_tree
from distsim.runtime.launch.owned_process import started
from distsim.testbed.run import ONE_THREAD

START_SECONDS = 120.0  # for pytest and a kernel to start on a busy machine
POLL_SECONDS = 0.05
TAIL_CHARACTERS = 2000
SETTINGS = "[pytest]\n"  # an own file, so that pytest does not search parent folders


class StoppedError(Exception):
    """The run was stopped because the caller asked for it."""


@dataclass(frozen=True)
class NotebookRun:
    """The outcome of a notebook's run. report: the table that `Notebook` wrote, empty if it wrote nothing.

    late: whether the deadline passed. output: the end of pytest's output.
    """

    report: dict[str, Any]
    late: bool
    output: str


def run(
    lab: Lab,
    content: bytes,
    *,
    seed: int,
    server: Path,
    trust: bool = False,
    stop: threading.Event | None = None,
    progress: Report | None = None,
) -> NotebookRun:
    """Runs the lab's notebook with `content` as its tasks.py, in a folder that is removed afterwards.

    seed: of the inputs that checks draw. server: where the fork server of ranks listens. trust: whether ranks may run
    without confinement. stop: once set, all processes end and StoppedError is raised. progress: called with the `Phase`
    of the run many times a second; it counts checks.
    """
    deadline = START_SECONDS + lab.about.check_seconds * len(lab.checks)
    with tempfile.TemporaryDirectory(prefix="distsim-grade-", ignore_cleanup_errors=True) as made:
        place, results = Path(made) / "work" / lab.key, Path(made) / "results" / "results.json"
        _prepare(lab, place, content)
        results.parent.mkdir()
        command = [sys.executable, "-m", "distsim.grading.notebook_run", str(place), str(lab.about.check_seconds)]
        with (Path(made) / "output").open("w+b") as output:
            with started(
                command,
                environment=_environment(results, seed, server, trust),
                stdout=output.fileno(),
                stderr=output.fileno(),
                folder=place,
            ) as process:
                late = _past_deadline(process, deadline, stop, _watching(lab, results, progress))
            output.seek(0)
            text = output.read().decode("utf-8", errors="replace")[-TAIL_CHARACTERS:]
        report = _read(results)
    return NotebookRun(report, late, text)


def _prepare(lab: Lab, place: Path, content: bytes) -> None:
    place.mkdir(parents=True)
    for path in lab.pristine:
        if path.name != NOTEBOOK:
            (place / path.name).write_bytes(path.read_bytes())
    write(for_grading(lab), place / NOTEBOOK)
    (place / TASKS).write_bytes(content)
    (place.parent / "pytest.ini").write_text(SETTINGS)


def _read(results: Path) -> dict[str, Any]:
    return json.loads(results.read_text("utf-8")) if results.is_file() else {}


def _watching(lab: Lab, results: Path, progress: Report | None) -> Callable[[], object]:
    """Tells how far the notebook has come: it writes its results after each check."""
    if progress is None:
        return lambda: None
    tell, count = progress, len(lab.checks)

    def look() -> None:
        done = len(_read(results).get("results", []))
        tell(Phase(f"check {done + 1} of {count}" if done < count else "ending the notebook", done, count))

    return look


def _past_deadline(
    process: subprocess.Popen[bytes], deadline: float, stop: threading.Event | None, look: Callable[[], object]
) -> bool:
    """Waits for the notebook. Returns whether it was still running at its deadline. look: called again and again."""
    give_up = time.monotonic() + deadline
    while process.poll() is None:
        look()
        if stop is not None and stop.is_set():
            raise StoppedError
        if time.monotonic() > give_up:
            return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)
    return False


def _environment(results: Path, seed: int, server: Path, trust: bool) -> dict[str, str]:
    given = {RESULTS_VARIABLE: str(results), SEED_VARIABLE: str(seed), SERVER_VARIABLE: str(server)}
    given["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment = os.environ | ONE_THREAD | given | trust_variables(trust)
    for name in ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER"):
        environment.pop(name, None)
    return environment


def main(place: Path, check_seconds: float) -> int:
    """Runs the notebook in `place` through nbval. Returns pytest's exit status, which decides nothing."""
    lifeline.keep(process_tree.abandon, inherit=False)
    gc.disable()  # this process ends with the notebook, so collecting would only delay it
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
    """Makes nbval's kernel listen on sockets in `folder`.

    By default a kernel chooses TCP ports before it binds them, so two concurrent graders may choose the same port.
    """
    from jupyter_client.manager import KernelManager
    from nbval import kernel

    kernel.KernelManager = partial(KernelManager, transport="ipc", connection_file=str(folder / "kernel.json"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
