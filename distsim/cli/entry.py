"""`distsim` as a shell starts it: Ctrl-C ends it with one message from the first moment, while it still imports."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Imports the commands, which takes a second or two, and runs the one that is asked for."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, as in the background
    if heard:
        signal.signal(signal.SIGINT, _leave)
    from distsim.cli.main import main as run

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Nothing has begun that would have to be put in order; an exception might be taken for a failed import."""
    sys.stderr.write("distsim: interrupted\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)
