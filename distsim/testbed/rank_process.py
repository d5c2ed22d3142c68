"""The process of one rank: how it is prepared, how it runs its function, and how it ends."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from distsim.testbed import linux_calls
from distsim.testbed.limits import Limits
from distsim.testbed.process_end import OUT_OF_MEMORY

OPENMP_THREADS = "1"  # the ranks of a run share the processors


@dataclass(frozen=True)
class RankProcess:
    """What one rank runs, and its descriptors: `kept` stay open, and `output` is its stdout and stderr."""

    rank: int
    call: Callable[[], None]
    kept: frozenset[int]
    output: int

    def prepare(self, work: Path, limits: Limits, *, processes: int | None) -> None:
        """Turns the calling process into the rank's process. processes: None where the rank is not confined."""
        os.setsid()
        default_signals()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(work)
        os.environ.update(_environment(work))
        tempfile.tempdir = None  # that of the process which forked this one
        os.dup2(self.output, 1)
        os.dup2(self.output, 2)
        _use_standard_streams()
        if processes is not None:
            Path("/proc/self/oom_score_adj").write_text("1000")  # the kernel ends ranks first when memory runs out
            linux_calls.drop_rights()
            linux_calls.show_memory(False)
        limits.keep(processes=processes)

    def run(self) -> int:
        """Calls the function and returns the exit code. An exception is printed."""
        close_all_but({0, 1, 2, *self.kept})
        code = 0
        try:
            self.call()
        except SystemExit as ending:
            code = _code_of(ending)
        except MemoryError:
            code = OUT_OF_MEMORY
            traceback.print_exc()
        except BaseException:  # noqa: BLE001 - any error ends this process and no other
            code = 1
            traceback.print_exc()
        flush_streams()
        return code


def flush_streams() -> None:
    """Writes out what was printed, if the reader is still there."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, without a reader, or no stream at all
            stream.flush()


def default_signals() -> None:
    """Resets all signal handlers. A broken pipe and a file beyond its limit stay Python errors."""
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    faulthandler.disable()


def close_all_but(kept: Iterable[int]) -> None:
    """Closes every other descriptor of this process."""
    borders = [-1, *sorted(kept), os.sysconf("SC_OPEN_MAX")]
    for before, after in pairwise(borders):
        if before + 1 < after:  # Python 3.11 closes all descriptors if the range is empty
            os.closerange(before + 1, after)


def fill_standard_descriptors() -> None:
    """Opens /dev/null as stdin, stdout or stderr where one is closed, so that no pipe gets its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _environment(work: Path) -> dict[str, str]:
    programs = (os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin")
    return {
        "PATH": os.pathsep.join(programs),
        "HOME": str(work),
        "TMPDIR": str(work.parent),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": OPENMP_THREADS,
    }


def _use_standard_streams() -> None:
    """Replaces the caller's streams, which may be anything, for example those of a notebook."""
    sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 - stays open until the process ends
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115
    faulthandler.enable(file=2)


def _code_of(ending: SystemExit) -> int:
    if ending.code is None:
        return 0
    if isinstance(ending.code, int):
        return ending.code & 0xFF
    sys.stderr.write(f"{ending.code}\n")
    return 1
