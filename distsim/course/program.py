"""A whole program that a chapter shows and runs: on its own, or as several ranks under torchrun.

from distsim.course import run_program

lines = run_program(SOURCE, ranks=2)
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from distsim.errors import InputError, RunError
from distsim.runtime.launch import process_tree
from distsim.runtime.launch.launcher import loopback
from distsim.runtime.launch.lifeline import RUN_VARIABLE

DEADLINE_SECONDS = 60.0
PRINTED = "printed"
RAISED = re.compile(r"^(?:\[rank\d+\]: )?((?:\w+\.)*\w*(?:Error|Exception)\b.*)$")


def run_program(source: str, ranks: int | None = None, *, deadline_seconds: float = DEADLINE_SECONDS) -> list[str]:
    """Runs Python source in processes of its own, and returns the lines that they printed, rank by rank.

    ranks: how many torchrun starts; without it, Python runs the source once, which may start what it likes.

    Raises RunError where a process failed, with the first error that any of them met, or where the deadline passed;
    InputError where `ranks` is below 1. No process is left behind.

    >>> run_program("print(6 * 7)")
    ['42']
    """
    if ranks is not None and ranks < 1:
        raise InputError.of("ranks", ranks, "must be at least 1", "write 2")
    environment = {"GLOO_SOCKET_IFNAME": loopback()} | os.environ  # this host's own name may lead nowhere
    run_id, since = uuid.uuid4().hex, time.time() - 1.0
    with tempfile.TemporaryDirectory(prefix="distsim-program-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "program.py"
        file.write_text(source, encoding="utf-8")
        torchrun = _torchrun(ranks, Path(folder) / PRINTED) if ranks else []
        with subprocess.Popen(
            [sys.executable, *torchrun, file.name], cwd=folder, env=environment | {RUN_VARIABLE: run_id}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        ) as started:  # fmt: skip
            try:
                printed, complaints = started.communicate(timeout=deadline_seconds)
            except subprocess.TimeoutExpired:
                late = f"the program: not finished after {deadline_seconds:g} s. Cure: run it again, or give it longer"
                raise RunError(late) from None
            finally:
                process_tree.end(run_id, [started.pid], since)
        if started.returncode:
            raise RunError(f"the program: {_first_error(complaints)}")
        return [*printed.splitlines(), *_lines(Path(folder) / PRINTED, ranks or 0)]


def _torchrun(ranks: int, printed: Path) -> list[str]:
    """The start of a command. Each rank prints into a file of its own: into one pipe they would mix up their lines."""
    apart = ["--redirects", "1", "--log-dir", str(printed)]
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *apart]


def _lines(printed: Path, ranks: int) -> list[str]:
    """What the ranks printed, in their order; torchrun has a folder for each run, each attempt, and each rank."""
    files = [file for rank in range(ranks) for file in printed.glob(f"*/*/{rank}/stdout.log")]
    return [line for file in files for line in file.read_text("utf-8", errors="replace").splitlines()]


def _first_error(complaints: str) -> str:
    """What ended the program; torchrun's own error comes last and says less."""
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    return next((found[1] for line in lines if (found := RAISED.match(line))), (lines or ["it said nothing"])[-1])
