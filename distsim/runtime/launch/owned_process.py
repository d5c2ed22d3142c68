"""A process that is started so that no process of its run outlives the caller's `with` block.

It starts a run of its own: every process below it carries the run's id in its environment. Its standard input is the
run's lifeline.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import distsim
from distsim.runtime.launch import fork_server, process_tree
from distsim.runtime.launch.fork_server import ForkedAgent
from distsim.runtime.launch.lifeline import RUN_VARIABLE


@contextmanager
def started(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    stdout: int,
    stderr: int,
    folder: Path | None = None,
    lifeline: bool = True,
    groups: Callable[[], Iterable[int]] = tuple,
    descriptors: Sequence[int] = (),
    imports: Iterable[str] | None = None,
) -> Iterator[subprocess.Popen[bytes] | ForkedAgent]:
    """The running process. At the end of the block, however it ends, all processes of the run are ended.

    stdout, stderr: file descriptors. folder: the working folder. lifeline: False gives an empty standard input instead.
    groups: asked at the end for process groups that belong to the run too. descriptors: which the process inherits.
    imports: modules of a Python program that the fork server may have imported; None: the process is started anew.
    distsim can be imported in the process.
    """
    run_id, since = uuid.uuid4().hex, time.time() - 1.0
    line, held = os.pipe()
    process: subprocess.Popen[bytes] | ForkedAgent | None = None
    variables = _importable(environment) | {RUN_VARIABLE: run_id}
    try:
        if imports is not None:
            process = fork_server.forked(
                command, environment=variables, imports=imports, streams=(line, stdout, stderr)
            )  # fmt: skip
        if process is None:
            process = subprocess.Popen(
                command, env=variables, cwd=folder, stdin=line if lifeline else subprocess.DEVNULL, stdout=stdout,
                stderr=stderr, pass_fds=descriptors,
                start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the others
            )  # fmt: skip
        yield process
    finally:
        try:
            process_tree.end(run_id, [*groups(), *([process.pid] if process else [])], since)
            if process is not None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
        finally:
            os.close(held)
            os.close(line)


def _importable(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with distsim on PYTHONPATH unless Python finds it where packages are installed."""
    home = str(Path(distsim.__file__).parents[1])
    if home in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return dict(environment)
    paths = [home, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environment, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}
