"""Runs a lab's own notebook with a given tasks.py, in separate processes that end with the run."""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

from distsim.grading.lab import NOTEBOOK, TASKS, Lab
from distsim.grading.metadata import for_grading, write
from distsim.grading.trust import trust_variables
from distsim.grading.variables import RESULTS_VARIABLE, SEED_VARIABLE, SERVER_VARIABLE
from distsim.progress import Phase, Report
from distsim.runtime.launch.owned_process import started
from distsim.testbed.environment import ONE_THREAD

START_SECONDS = 120.0  # for pytest and a kernel to start on a busy machine
POLL_SECONDS = 0.05
TAIL_CHARACTERS = 2000
SETTINGS_FILE, SETTINGS = "pytest.ini", "[pytest]\n"  # an own file, so that pytest does not search parent folders


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
        command = [
            sys.executable, "-m", "distsim.runtime.notebook_program", str(place / NOTEBOOK),
            str(place.parent / SETTINGS_FILE), made, str(lab.about.check_seconds), str(START_SECONDS),
        ]  # fmt: skip
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
    (place.parent / SETTINGS_FILE).write_text(SETTINGS)


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
