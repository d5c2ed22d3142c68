"""A process that is started so that no process of its run outlives the caller's `with` block.

It starts a run of its own: every process below it carries the run's id in its environment. Its standard input is the
run's lifeline.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

import distsim
from distsim.errors import RunError
from distsim.runtime.launch import fork_client, process_tree
from distsim.runtime.launch.lifeline import RUN_VARIABLE


class Process(Protocol):
    """The part of `subprocess.Popen` that launching needs."""

    @property
    def pid(self) -> int | None: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


Kind = TypeVar("Kind", bound=Process)


@contextmanager
def started(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    stdout: int,
    stderr: int,
    folder: Path | None = None,
    lifeline: bool = True,
    descriptors: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """The running process. At the end of the block, however it ends, all processes of the run are ended.

    stdout, stderr: file descriptors. folder: the working folder. lifeline: False gives an empty standard input instead.
    descriptors: which the process inherits. distsim can be imported in the process.
    """

    def start(variables: dict[str, str], line: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, env=variables, cwd=folder, stdin=line if lifeline else subprocess.DEVNULL, stdout=stdout,
            stderr=stderr, pass_fds=descriptors,
            process_group=0,  # Ctrl-C reaches this process alone, which then ends the others
        )  # fmt: skip

    with _owned(start, environment, tuple) as process:
        yield process


@contextmanager
def companion(what: str, module: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A program of distsim that runs beside the block, and ends with it. Its standard input is its lifeline.

    what: the program's name in messages. module: run by Python with these arguments. Raises RunError at the end of the
    block where the program ended before.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    nowhere = subprocess.DEVNULL
    with started(command, environment=os.environ, stdout=nowhere, stderr=nowhere) as program:
        yield program
        if (code := program.poll()) is not None:
            raise RunError(f"{what} ended too early, with exit code {code}")


@contextmanager
def forked(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: int,
    imports: Iterable[str],
    groups: Callable[[], Iterable[int]],
) -> Iterator[Process]:
    """As `started`, but for a Python program that is forked where the system can do this.

    output: a file descriptor for its output and its errors. imports: modules that are imported before the fork.
    groups: asked at the end for process groups that belong to the run too.
    """

    def start(variables: dict[str, str], line: int) -> Process:
        streams = (line, output, output)
        agent = fork_client.forked(command, environment=variables, imports=imports, streams=streams)
        return agent or subprocess.Popen(
            command, env=variables, stdin=line, stdout=output, stderr=output, process_group=0
        )

    with _owned(start, environment, groups) as process:
        yield process


@contextmanager
def _owned(
    start: Callable[[dict[str, str], int], Kind], environment: Mapping[str, str], groups: Callable[[], Iterable[int]]
) -> Iterator[Kind]:
    """The process that `start` makes of all variables and a lifeline, and the end of its run."""
    run_id, since = uuid.uuid4().hex, time.time() - 1.0
    line, held = os.pipe()
    process: Kind | None = None
    try:
        process = start(_importable(environment) | {RUN_VARIABLE: run_id}, line)
        yield process
    finally:
        try:
            if process is not None:
                process.poll()  # tells the number of a process that was being forked
            leads = [process.pid] if process and process.pid else []
            process_tree.end(run_id, [*groups(), *leads], since)
            if process is not None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
        finally:
            os.close(held)
            os.close(line)


def _importable(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with distsim on PYTHONPATH unless Python finds it where packages are installed.

    The folders on PYTHONPATH become absolute: a fork server runs in another folder.
    """
    home = str(Path(distsim.__file__).parents[1])
    installed = home in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    given = environment.get("PYTHONPATH", "").split(os.pathsep) if environment.get("PYTHONPATH") else []
    paths = [*([] if installed else [home]), *map(os.path.abspath, given)]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)} if paths else dict(environment)
