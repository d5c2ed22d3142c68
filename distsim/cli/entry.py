"""The start of the `distsim` command: Ctrl-C ends it with one message, even during the imports."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType

from distsim.progress import opening, wiped

INTERRUPTED = 130


def main() -> None:
    """Runs the command line."""
    with loading():
        from distsim.cli.main import main as run
    run(loading)


@contextmanager
def loading() -> Iterator[None]:
    """For a block of this process that imports modules: a terminal tells it, and Ctrl-C ends the process."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell ignores it for background jobs
    if heard:
        signal.signal(signal.SIGINT, _leave)
    try:
        with opening("distsim: loading") if "--json" not in sys.argv else nullcontext():
            gc.disable()  # imports leave nothing to collect, and the search for it takes a fifth of their time
            yield
            gc.freeze()
    finally:
        gc.enable()
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Ends the process at once: nothing needs to be cleaned up, and an exception could look like a failed import."""
    wiped()
    sys.stderr.write("distsim: interrupted\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)
