"""Runs the ranks of unknown code in processes that can reach only the descriptors given to them.

    with Sandbox.start(bodies, folder=folder, names=["tasks.py"], keep=[[line] for line in lines]) as sandbox:
        sandbox.outputs    what each rank prints
        sandbox.wait()     how each ended

A rank sees Python, its packages and the system's libraries, read-only, and nothing else of the machine. It writes only
to memory, which is freed when the rank ends. It has no network, no rights, no secrets in its environment, and limits.
The sandbox needs Linux 5.14 or newer with user namespaces; `reason_against()` tells what is missing. It does not
protect against side channels of the hardware.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from distsim.errors import InputError, RunError
from distsim.testbed.folder_copy import FolderCopy
from distsim.testbed.limits import Limits
from distsim.testbed.namespaces import material_places, python_places
from distsim.testbed.process_end import ProcessEnd
from distsim.testbed.rank_process import RankProcess, fill_standard_descriptors
from distsim.testbed.supervisor import Supervisor

__all__ = ["Limits", "ProcessEnd", "Sandbox", "reason_against"]

START_SECONDS, END_SECONDS = 60.0, 10.0  # time limits for supervisors, which usually take milliseconds
OLDEST_LINUX = (5, 14)  # the first that counts processes for each user namespace


class Sandbox:
    """The ranks of one run. `pids` and `outputs` have one element per rank; the caller must read the outputs."""

    def __init__(self, outputs: Sequence[int], reports: int, control: int) -> None:
        self.outputs = list(outputs)
        self.pids: list[int] = []
        self.endings: list[ProcessEnd | None] = [None] * len(outputs)
        self._supervisors: list[int] = []
        self._error: str | None = None
        self._reports = reports
        self._control = control
        self._unread = b""
        self._started: dict[int, int] = {}
        self._open = {*outputs, reports, control}

    @classmethod
    def start(
        cls, bodies: Sequence[Callable[[], None]], *, folder: Path, names: Sequence[str] = (),
        limits: Limits | None = None, keep: Sequence[Sequence[int]] = (), private: bool = True, loopback: bool = False,
        trusted: bool = False,
    ) -> Self:  # fmt: skip
        """Forks one process for each body, each in the working folder `/tmp/work` with a copy of some of the files.

        names: of the files of `folder` that the ranks get. The folder itself does not exist for them.
        keep: the descriptors of each rank, besides stdin (empty), stdout and stderr (its output).
        private: ranks share nothing but their kept descriptors. Otherwise they share the folder, the loopback and the
        process namespace. loopback: whether 127.0.0.1 exists.
        trusted: limits only, in a temporary folder; for machines that cannot confine, and for trusted code.

        Raises RunError if the ranks cannot be started, and InputError if the files hold too much.
        """
        limits = limits or Limits()
        files = FolderCopy.of(folder, names, most_bytes=limits.file_bytes)
        kept = [frozenset(of_one) for of_one in keep] or [frozenset[int]()] * len(bodies)
        fill_standard_descriptors()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # otherwise each forked process would print the buffered text again
        pipes = [os.pipe() for _ in bodies]
        reports, control = os.pipe(), os.pipe()
        sandbox = cls([reading for reading, _ in pipes], reports[0], control[1])
        everyone = [
            RankProcess(rank, call, descriptors, writing)
            for rank, (call, descriptors, (_, writing)) in enumerate(zip(bodies, kept, pipes, strict=True))
        ]
        try:
            try:
                for members in [[body] for body in everyone] if private else [everyone]:
                    sandbox._fork(
                        Supervisor(
                            members, files, limits, [folder, *material_places()], python_places(), loopback, trusted,
                            reports[1], control[0], caller=os.getpid(),
                        )
                    )  # fmt: skip
            finally:
                for descriptor in (reports[1], control[0], *(writing for _, writing in pipes)):
                    os.close(descriptor)
            sandbox._await_start()
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def fileno(self) -> int:
        """A descriptor for select and poll: readable when a rank has ended. Then call `wait(0)`."""
        return self._reports

    def wait(self, timeout_seconds: float | None = None) -> list[ProcessEnd | None]:
        """Waits for all ranks, or for the timeout, and returns how each rank ended; None for a running rank.

        Raises RunError if a supervisor failed. A rank blocks when its output pipe is full, so a caller that waits
        without a timeout must read the outputs in another thread.
        """
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while None in self.endings and self._read(until):
            pass
        self._raise_error()
        return list(self.endings)

    def kill(self) -> None:
        """Ends the ranks and all processes that they started, and waits until all are gone."""
        if not self._open:
            return
        with contextlib.suppress(BrokenPipeError):  # all supervisors have ended
            os.write(self._control, b"e")
        until = time.monotonic() + END_SECONDS
        while self._read(until):
            pass
        for supervisor in self._supervisors:
            if time.monotonic() >= until:
                os.kill(supervisor, signal.SIGKILL)
            with contextlib.suppress(
                ChildProcessError
            ):  # the caller ignores SIGCHLD, so the kernel has reaped its children
                os.waitpid(supervisor, 0)
        self._supervisors = []

    def close(self) -> None:
        """Ends all ranks and closes the outputs."""
        self.kill()
        while self._open:
            os.close(self._open.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _await_start(self) -> None:
        while len(self._started) < len(self.outputs):
            if not self._read(time.monotonic() + START_SECONDS):
                self._error = "a supervisor did not answer"
            self._raise_error()
        self.pids = [self._started[rank] for rank in range(len(self.outputs))]

    def _fork(self, supervisor: Supervisor) -> None:
        pid = os.fork()
        if pid == 0:
            supervisor.run()
        self._supervisors.append(pid)

    def _raise_error(self) -> None:
        if self._error:
            raise RunError(f"the ranks could not be confined: {self._error}")

    def _read(self, until: float | None) -> bool:
        """Reads reports of the supervisors. Returns False after the timeout, or when no supervisor is left."""
        poller = select.poll()
        poller.register(self._reports, select.POLLIN)
        if not poller.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000):
            return False
        come = os.read(self._reports, 2**16)
        if not come:
            self.endings = [ending or ProcessEnd(signal=signal.SIGKILL) for ending in self.endings]
            return False
        *lines, self._unread = (self._unread + come).split(b"\n")
        for line in lines:
            self._take(**json.loads(line))
        return True

    def _take(
        self, *, pids: dict[str, int] | None = None, rank: int = 0, status: int | None = None, error: str | None = None
    ) -> None:
        self._error = self._error or error
        if pids is not None:
            self._started.update({int(number): pid for number, pid in pids.items()})
        if status is not None:
            self.endings[rank] = ProcessEnd.of(status)


@cache
def reason_against() -> str | None:
    """Why this machine cannot confine code, or None if it can. The first call tries it for real.

    >>> reason_against() is None or "Cure: " in reason_against()
    True
    """
    asked, cure = "sandbox", "take Linux 5.14 or newer with user namespaces allowed, or run trusted code only"
    if sys.platform != "linux":
        return str(InputError.of(asked, sys.platform, "only Linux has namespaces", cure))
    release = platform.release()
    if tuple(map(int, re.findall(r"\d+", release)[:2])) < OLDEST_LINUX:
        return str(InputError.of(asked, release, "this Linux does not count processes for each user namespace", cure))
    try:
        with tempfile.TemporaryDirectory() as name, Sandbox.start([lambda: None], folder=Path(name)) as sandbox:
            (ending,) = sandbox.wait(10.0)
    except RunError as error:
        return str(InputError.of(asked, release, str(error), cure))
    if ending != ProcessEnd(code=0):
        return str(InputError.of(asked, release, f"a process that does nothing ended with {ending}", cure))
    return None
