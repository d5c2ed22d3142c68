"""Makes SIGTERM unwind the stack, so that processes are ended and folders removed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def termination_raises() -> Iterator[None]:
    """In the block SIGTERM raises SystemExit, unless the program has set a handler of its own."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    if ours:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
