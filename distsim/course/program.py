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
from pathlib import Path

from distsim.errors import InputError, RunError
from distsim.runtime.launch.launcher import loopback
from distsim.runtime.launch.owned_process import started

DEADLINE_SECONDS = 60.0
SOURCE = "program.py"
RAISED = re.compile(r"^(?:\[rank\d+\]: )?((?:\w+\.)*\w*(?:Error|Exception)\b.*)$")


def run_program(source: str, ranks: int | None = None, *, deadline_seconds: float = DEADLINE_SECONDS) -> list[str]:
    """Runs Python source in processes of its own, and returns the lines that they printed, rank by rank.

    ranks: how many torchrun starts. None: Python runs the source once, and the source may start processes itself.

    Raises RunError, with the first error of any process, where a process failed, and where the deadline passed. Raises
    InputError where `ranks` is below 1. No process is left behind.

    >>> run_program("print(6 * 7)")
    ['42']
    """
    if ranks is not None and ranks < 1:
        raise InputError.of("ranks", ranks, "must be at least 1", "write 2")
    with tempfile.TemporaryDirectory(prefix="distsim-program-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        (folder / SOURCE).write_text(source, encoding="utf-8")
        with (
            (folder / "stdout.log").open("wb") as printed,
            (folder / "stderr.log").open("wb") as complaints,
            started(
                [sys.executable, *_torchrun(ranks), SOURCE],
                environment={"GLOO_SOCKET_IFNAME": loopback()} | os.environ,  # this host's own name may not resolve
                stdout=printed.fileno(), stderr=complaints.fileno(), folder=folder, lifeline=False,
            ) as process,
        ):  # fmt: skip
            try:
                process.wait(deadline_seconds)
            except subprocess.TimeoutExpired:
                late = f"not finished after {deadline_seconds:g} s. Cure: run it again, or give it longer"
                raise RunError(f"the program: {late}") from None
        outputs = [folder, *_folders(folder, ranks or 0)]
        if process.returncode:
            raise RunError(f"the program: {_first_error([output / 'stderr.log' for output in outputs])}")
        return [line for output in outputs for line in _lines(output / "stdout.log")]


def _torchrun(ranks: int | None) -> list[str]:
    """The start of a command. Each rank writes to files of its own, since one file would mix the letters."""
    if ranks is None:
        return []
    apart = ["--redirects", "3", "--log-dir", "ranks"]
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *apart]


def _folders(folder: Path, ranks: int) -> list[Path]:
    """The folder of each rank's output, in order. torchrun makes a folder for each run, each start and each rank."""
    return [found for rank in range(ranks) for found in folder.glob(f"ranks/*/*/{rank}")]


def _lines(file: Path) -> list[str]:
    return file.read_text("utf-8", errors="replace").splitlines() if file.exists() else []


def _first_error(files: list[Path]) -> str:
    """The error that ended the program, of the rank that stopped writing first.

    Errors that follow from it come later. files: torchrun's own file, which says less, then a file for each rank.
    """
    agent, *of_ranks = files
    of_ranks.sort(key=lambda file: file.stat().st_mtime_ns)
    lines = [line.strip() for file in (*of_ranks, agent) for line in _lines(file) if line.strip()]
    return next((found[1] for line in lines if (found := RAISED.match(line))), (lines or ["it said nothing"])[-1])
