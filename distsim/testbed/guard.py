"""The process that watches ranks: it makes their enclosure, forks them, reports how each ended, and leaves nothing.

    caller
      guard          outside of the enclosure's process numbers: nothing in there can name it
        first        process 1 in there: takes in orphans, and takes all with it when it ends
        ranks        children of the guard: what it reports of them, the kernel told it

The guard ends the enclosure when its ranks have ended, when the caller says so, and when the caller is gone.
Should the guard itself be killed, the kernel ends the first process, and so the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psutil

from distsim.testbed import kernel, namespaces
from distsim.testbed.body import Body, close_all_but, default_signals, fill_standard_descriptors
from distsim.testbed.files import Files
from distsim.testbed.limits import Limits

OWN_PROCESSES = 2  # the guard and the first process: the kernel counts them as the ranks'


@dataclass(frozen=True)
class Guard:
    """What a guard needs to know.

    reports: descriptor that it writes. control: one that it watches; anything in it, or its end, ends the ranks.
    caller: the caller's process number.
    """

    bodies: Sequence[Body]
    files: Files
    limits: Limits
    hidden: Sequence[str]
    places: Sequence[str]
    loopback: bool
    trusted: bool
    reports: int
    control: int
    caller: int

    def run(self) -> NoReturn:
        """The whole life of the guard, in a process of its own. Nothing goes up into the frames of the caller."""
        try:
            os.setsid()  # Ctrl-C is for the caller
            default_signals()
            given = {descriptor for body in self.bodies for descriptor in (body.output, *body.kept)}
            close_all_but({self.reports, self.control, *given})
            fill_standard_descriptors()
            waker = _waked_by_children()
            caller = self._descriptor_of_caller()
            kernel.forget_environment()
            first = None if self.trusted else self._enclose()
            work = self._lay_out()
            living = {self._fork(body, work): body.rank for body in self.bodies}
            for descriptor in given:
                os.close(descriptor)
            self._tell(pids={rank: pid for pid, rank in living.items()})
            self._watch(living, waker, [self.control, *caller])
            self._end(living, first)
            if self.trusted:
                shutil.rmtree(work, ignore_errors=True)  # a rank may have taken the rights from its own folders
        except OSError as error:
            self._tell(error=str(error))
        except BaseException:  # noqa: BLE001 - told to the caller
            self._tell(error=traceback.format_exc())
        finally:
            os._exit(0)

    def _descriptor_of_caller(self) -> list[int]:
        """Becomes readable when the caller is gone. Where there is no such thing, the end of `control` tells it."""
        if sys.platform != "linux":
            return []
        descriptor = os.pidfd_open(self.caller)
        if os.getppid() != self.caller:
            raise ProcessLookupError("the caller is gone")
        return [descriptor]

    def _enclose(self) -> int:
        """Makes the enclosure, and returns the number of its first process."""
        namespaces.enter(self.limits, hidden=self.hidden, places=self.places, loopback=self.loopback)
        first = _fork_first()
        namespaces.no_more_namespaces()
        return first

    def _lay_out(self) -> Path:
        if self.trusted:
            if sys.platform == "linux":  # elsewhere a daemon gets away
                kernel.adopt_orphans()
            work = Path(tempfile.mkdtemp(prefix="distsim-"))
        else:
            work = Path(namespaces.WORK)
        self.files.lay_out(work)
        return work

    def _fork(self, body: Body, work: Path) -> int:
        if pid := os.fork():
            return pid
        try:
            counted = OWN_PROCESSES + self.limits.processes * len(self.bodies)
            body.prepare(work, self.limits, processes=None if self.trusted else counted)
            os._exit(body.run())
        except BaseException:  # noqa: BLE001 - told to the caller
            self._tell(error=traceback.format_exc())
        finally:
            os._exit(1)

    def _watch(self, living: dict[int, int], waker: int, ends: Sequence[int]) -> None:
        """Returns when no rank lives any more, when the caller says so, or when it is gone."""
        poller = select.poll()
        for descriptor in (waker, *ends):
            poller.register(descriptor, select.POLLIN)
        while living:
            if any(descriptor != waker for descriptor, _ in poller.poll()):
                return
            os.read(waker, 2**16)
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                self._note(living, *ended)
                if not living:
                    return

    def _end(self, living: dict[int, int], first: int | None) -> None:
        """Ends all that is left, and waits for it."""
        if first is not None:
            os.kill(first, signal.SIGKILL)
        while True:
            if first is None:
                for child in psutil.Process().children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        child.kill()
            try:
                self._note(living, *os.waitpid(-1, 0))
            except ChildProcessError:
                return

    def _note(self, living: dict[int, int], pid: int, status: int) -> None:
        if (rank := living.pop(pid, None)) is not None:
            self._tell(rank=rank, status=status)

    def _tell(self, **report: object) -> None:
        """Writes one line, which comes whole."""
        text = {name: value[-2000:] if isinstance(value, str) else value for name, value in report.items()}
        with contextlib.suppress(BrokenPipeError):  # the caller is gone
            os.write(self.reports, json.dumps(text).encode() + b"\n")


def _fork_first() -> int:
    """Forks process 1 of the enclosure, and waits until it stands."""
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        told = os.read(reading, 1000).decode()
        os.close(reading)
        if told != "ready":
            raise OSError(told or "the enclosure's first process ended at once")
        return pid
    try:
        os.setsid()
        default_signals()
        close_all_but({writing})
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries orphans
        kernel.die_with_parent(signal.SIGKILL)
        try:
            namespaces.own_processes()
            kernel.drop_rights()
            kernel.show_memory(False)
        except OSError as error:
            os.write(writing, str(error).encode())
            os._exit(1)
        os.write(writing, b"ready")  # raises where the guard ended before `die_with_parent`
        os.close(writing)
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _waked_by_children() -> int:
    """A descriptor that becomes readable when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading
