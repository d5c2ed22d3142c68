"""Runs the ranks of unknown code in processes that can reach nothing but the descriptors they were given.

    with Enclosure.start(bodies, folder=folder, keep=[[line] for line in lines]) as enclosure:
        enclosure.outputs    what each rank prints
        enclosure.wait()     how each ended

A rank sees the file system read-only, without homes, devices and files of others, and writes to memory that
goes with it; it has no network, no rights, no secrets in its environment, and limits. This takes Linux 5.14 or newer
with user namespaces: `reason_against()` tells what is missing. It does not keep apart what the hardware shares.
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
from distsim.testbed.body import Body, fill_standard_descriptors
from distsim.testbed.ending import Ending
from distsim.testbed.files import Files
from distsim.testbed.guard import Guard
from distsim.testbed.limits import Limits
from distsim.testbed.namespaces import python_places

__all__ = ["Enclosure", "Ending", "Limits", "reason_against"]

START_SECONDS, END_SECONDS = 60.0, 10.0  # the longest that guards may take; milliseconds are usual
OLDEST_LINUX = (5, 14)  # the first that counts processes for each user namespace


class Enclosure:
    """The running ranks of one run. `pids` and `outputs` have one element for each; the outputs are to be read."""

    def __init__(self, outputs: Sequence[int], reports: int, control: int) -> None:
        self.outputs = list(outputs)
        self.pids: list[int] = []
        self.endings: list[Ending | None] = [None] * len(outputs)
        self._guards: list[int] = []
        self._error: str | None = None
        self._reports = reports
        self._control = control
        self._unread = b""
        self._started: dict[int, int] = {}
        self._open = {*outputs, reports, control}

    @classmethod
    def start(
        cls, bodies: Sequence[Callable[[], None]], *, folder: Path, limits: Limits | None = None,
        keep: Sequence[Sequence[int]] = (), private: bool = True, loopback: bool = False, hidden: Sequence[Path] = (),
        trusted: bool = False,
    ) -> Self:  # fmt: skip
        """Forks one process for each body, each in the working folder `/tmp/work` with a copy of the folder's files.

        keep: the descriptors that each body has, beside stdin (empty), stdout and stderr (its output).
        private: ranks have nothing in common but what they keep. Otherwise they share the folder, the loopback, and
        their numbers of processes. loopback: 127.0.0.1 is there.
        hidden: folders to be seen empty, beside homes and temporary folders. Python and its packages are always seen.
        trusted: no confinement but limits, in a temporary folder. For machines that cannot confine, and for own code.

        Raises RunError where the ranks could not be started, InputError where `folder` holds too much.
        """
        limits = limits or Limits()
        files = Files.of(folder, most_bytes=limits.file_bytes)
        kept = [frozenset(of_one) for of_one in keep] or [frozenset[int]()] * len(bodies)
        fill_standard_descriptors()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # or what waits in there would be printed by each process again
        pipes = [os.pipe() for _ in bodies]
        reports, control = os.pipe(), os.pipe()
        enclosure = cls([reading for reading, _ in pipes], reports[0], control[1])
        everyone = [
            Body(rank, call, descriptors, writing)
            for rank, (call, descriptors, (_, writing)) in enumerate(zip(bodies, kept, pipes, strict=True))
        ]
        try:
            try:
                for members in [[body] for body in everyone] if private else [everyone]:
                    enclosure._fork(
                        Guard(
                            members, files, limits, _covered(hidden), python_places(), loopback, trusted,
                            reports[1], control[0], caller=os.getpid(),
                        )
                    )  # fmt: skip
            finally:
                for descriptor in (reports[1], control[0], *(writing for _, writing in pipes)):
                    os.close(descriptor)
            enclosure._await_start()
        except BaseException:
            enclosure.close()
            raise
        return enclosure

    def fileno(self) -> int:
        """For select and poll: readable when a rank has ended. Then call `wait(0)`."""
        return self._reports

    def wait(self, timeout_seconds: float | None = None) -> list[Ending | None]:
        """How each rank ended, when all have, or the time is over: None for those that run.

        Raises RunError where a guard failed.
        Whoever waits without an end has to read the outputs meanwhile: a rank stops where its pipe is full.
        """
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while None in self.endings and self._read(until):
            pass
        self._raise_error()
        return list(self.endings)

    def kill(self) -> None:
        """Ends the ranks and all that they have started, and waits until all is gone."""
        if not self._open:
            return
        with contextlib.suppress(BrokenPipeError):  # all guards have ended
            os.write(self._control, b"e")
        until = time.monotonic() + END_SECONDS
        while self._read(until):
            pass
        for guard in self._guards:
            if time.monotonic() >= until:
                os.kill(guard, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # the caller lets the kernel bury its children
                os.waitpid(guard, 0)
        self._guards = []

    def close(self) -> None:
        """Ends all, and closes the outputs."""
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
                self._error = "a guard said nothing"
            self._raise_error()
        self.pids = [self._started[rank] for rank in range(len(self.outputs))]

    def _fork(self, guard: Guard) -> None:
        pid = os.fork()
        if pid == 0:
            guard.run()
        self._guards.append(pid)

    def _raise_error(self) -> None:
        if self._error:
            raise RunError(f"the ranks could not be confined: {self._error}")

    def _read(self, until: float | None) -> bool:
        """Takes in what the guards report; False when the time is over, or when no guard is left."""
        poller = select.poll()
        poller.register(self._reports, select.POLLIN)
        if not poller.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000):
            return False
        come = os.read(self._reports, 2**16)
        if not come:
            self.endings = [ending or Ending(signal=signal.SIGKILL) for ending in self.endings]
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
            self.endings[rank] = Ending.of(status)


def _covered(hidden: Sequence[Path]) -> list[str]:
    folders = [os.path.abspath(path) for path in hidden]
    home = os.path.abspath(os.path.expanduser("~"))
    return folders if home == "/" else [*folders, home]  # some services live at the root


@cache
def reason_against() -> str | None:
    """Why this machine cannot confine, or None where it can. Tried once, for real.

    >>> reason_against() is None or "Cure: " in reason_against()
    True
    """
    asked, cure = "enclosure", "take Linux 5.14 or newer with user namespaces allowed, or run trusted code only"
    if sys.platform != "linux":
        return str(InputError.of(asked, sys.platform, "only Linux has namespaces", cure))
    release = platform.release()
    if tuple(map(int, re.findall(r"\d+", release)[:2])) < OLDEST_LINUX:
        return str(InputError.of(asked, release, "this Linux does not count processes for each user namespace", cure))
    try:
        with tempfile.TemporaryDirectory() as name, Enclosure.start([lambda: None], folder=Path(name)) as enclosure:
            (ending,) = enclosure.wait(10.0)
    except RunError as error:
        return str(InputError.of(asked, release, str(error), cure))
    if ending != Ending(code=0):
        return str(InputError.of(asked, release, f"a process that does nothing ended with {ending}", cure))
    return None
