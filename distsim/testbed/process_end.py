"""How a rank's process ended, as reported by the kernel to the process that waited for it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

OUT_OF_MEMORY = 71  # the exit code after a MemoryError

_MEANING = {
    signal.SIGXCPU: "used more processor time than it may",
    signal.SIGXFSZ: "wrote a larger file than it may",
    signal.SIGSEGV: "touched memory that is not its own",
}


@dataclass(frozen=True)
class ProcessEnd:
    """The end of a process: an exit code, or the number of a signal.

    >>> print(ProcessEnd(code=3)), print(ProcessEnd(signal=9)), print(ProcessEnd(signal=24))
    exit code 3
    ended by SIGKILL
    used more processor time than it may (SIGXCPU)
    (None, None, None)
    """

    code: int | None = None
    signal: int | None = None

    @classmethod
    def of(cls, status: int) -> ProcessEnd:
        """The end that `os.waitpid` reported as `status`."""
        if os.WIFSIGNALED(status):
            return cls(signal=os.WTERMSIG(status))
        return cls(code=os.WEXITSTATUS(status))

    def __str__(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}" + (" (out of memory)" if self.code == OUT_OF_MEMORY else "")
        try:
            number = signal.Signals(self.signal)
        except ValueError:
            return f"ended by signal {self.signal}"  # one of the real-time signals
        return f"{_MEANING[number]} ({number.name})" if number in _MEANING else f"ended by {number.name}"
