"""The supervisor process: it builds the sandbox, forks the ranks, reports how each ended, and cleans up.

    caller
      supervisor     outside the sandbox's process namespace, so no process in the sandbox can address it
        first        process 1 of the sandbox: adopts orphans; its end ends every process of the sandbox
        ranks        children of the supervisor, which learns from the kernel how they ended

The supervisor ends the sandbox when its ranks have ended, when the caller asks for it, or when the caller is gone. If
the supervisor itself is killed, the kernel ends the first process and with it the sandbox.
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

from distsim.testbed import linux_calls, namespaces
from distsim.testbed.folder_copy import FolderCopy
from distsim.testbed.limits import Limits
from distsim.testbed.rank_process import RankProcess, close_all_but, default_signals, fill_standard_descriptors

OWN_PROCESSES = 2  # the kernel counts the supervisor and the first process together with the ranks


@dataclass(frozen=True)
class Supervisor:
    """The supervisor of some ranks.

    reports: the descriptor to which it writes reports. control: the descriptor that it watches; any byte in it, or its
    end, ends the ranks. caller: the process id of the caller.
    """

    bodies: Sequence[RankProcess]
    files: FolderCopy
    limits: Limits
    hidden: Sequence[Path]
    places: Sequence[str]
    loopback: bool
    trusted: bool
    reports: int
    control: int
    caller: int

    def run(self) -> NoReturn:
        """Runs the supervisor in the process that was forked for it, and ends that process. Nothing is raised."""
        try:
            os.setsid()  # Ctrl-C is for the caller
            default_signals()
            given = {descriptor for body in self.bodies for descriptor in (body.output, *body.kept)}
            close_all_but({self.reports, self.control, *given})
            fill_standard_descriptors()
            waker = _waked_by_children()
            caller = self._descriptor_of_caller()
            linux_calls.forget_environment()
            first = None if self.trusted else self._enclose()
            work = self._lay_out()
            living = {self._fork(body, work): body.rank for body in self.bodies}
            for descriptor in given:
                os.close(descriptor)
            self._tell(pids={rank: pid for pid, rank in living.items()})
            self._watch(living, waker, [self.control, *caller])
            self._end(living, first)
            if self.trusted:
                shutil.rmtree(work.parent, ignore_errors=True)  # a rank may have taken the rights from its own folders
        except OSError as error:
            self._tell(error=str(error))
        except BaseException:  # noqa: BLE001 - reported to the caller
            self._tell(error=traceback.format_exc())
        finally:
            os._exit(0)

    def _descriptor_of_caller(self) -> list[int]:
        """A descriptor that becomes readable when the caller is gone. On other systems than Linux, `control` ends."""
        if sys.platform != "linux":
            return []
        descriptor = os.pidfd_open(self.caller)
        if os.getppid() != self.caller:
            raise ProcessLookupError("the caller is gone")
        return [descriptor]

    def _enclose(self) -> int:
        """Builds the sandbox and returns the process id of its first process."""
        namespaces.enter(self.limits, hidden=self.hidden, places=self.places, loopback=self.loopback)
        first = _fork_first()
        namespaces.no_more_namespaces()
        return first

    def _lay_out(self) -> Path:
        """Writes the files into the working folder, which lies in the run's own folder for temporary files."""
        if self.trusted:
            if sys.platform == "linux":  # on other systems a daemon can escape
                linux_calls.adopt_orphans()
            work = Path(tempfile.mkdtemp(prefix="distsim-"), "work")
        else:
            work = Path(namespaces.WORK)
        self.files.lay_out(work)
        return work

    def _fork(self, body: RankProcess, work: Path) -> int:
        if pid := os.fork():
            return pid
        try:
            counted = OWN_PROCESSES + self.limits.processes * len(self.bodies)
            body.prepare(work, self.limits, processes=None if self.trusted else counted)
            os._exit(body.run())
        except BaseException:  # noqa: BLE001 - reported to the caller
            self._tell(error=traceback.format_exc())
        finally:
            os._exit(1)

    def _watch(self, living: dict[int, int], waker: int, ends: Sequence[int]) -> None:
        """Returns when no rank is alive, when the caller asks for the end, or when the caller is gone."""
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
        """Ends all remaining processes and waits for them."""
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
        """Writes one line in a single call, so that lines never mix."""
        text = {name: value[-2000:] if isinstance(value, str) else value for name, value in report.items()}
        with contextlib.suppress(BrokenPipeError):  # the caller is gone
            os.write(self.reports, json.dumps(text).encode() + b"\n")


def _fork_first() -> int:
    """Forks process 1 of the sandbox, and waits until it is ready."""
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        told = os.read(reading, 1000).decode()
        os.close(reading)
        if told != "ready":
            raise OSError(told or "the sandbox's first process ended at once")
        return pid
    try:
        os.setsid()
        default_signals()
        close_all_but({writing})
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps orphans
        linux_calls.die_with_parent(signal.SIGKILL)
        try:
            namespaces.own_processes()
            linux_calls.drop_rights()
            linux_calls.show_memory(False)
        except OSError as error:
            os.write(writing, str(error).encode())
            os._exit(1)
        os.write(writing, b"ready")  # raises where the supervisor ended before `die_with_parent`
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
