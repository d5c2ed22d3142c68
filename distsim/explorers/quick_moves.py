"""Quick moves of controls are drawn once, after the last of them.

A browser sends a message for each move, and a kernel handles its messages in order. A figure drawn for each message
would keep the later messages waiting, and the browser would paint figures that nobody wants any more. So a lone move is
drawn at once. A move that follows another within `QUICK_SECONDS` waits until no further move has come for
`QUIET_SECONDS`: meanwhile the kernel's event loop handles the messages that wait, and each replaces the values before.

A move that comes from Python, and not from a browser's message, is drawn before the assignment returns. So is every
move where no kernel or no event loop runs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from IPython.core.getipython import get_ipython

QUICK_SECONDS = 0.15
QUIET_SECONDS = 0.1


class QuickMoves:
    """Calls `draw` for a lone move at once, and for several quick moves after the last of them.

    >>> moves = QuickMoves(lambda: print("drawn"))
    >>> moves.moved()
    drawn
    """

    def __init__(self, draw: Callable[[], object]) -> None:
        self._draw = draw
        self._waiting: asyncio.TimerHandle | None = None
        self._last_seconds = -math.inf  # the loop's time at the end of the last move's handling

    def moved(self) -> None:
        """A control has been moved."""
        loop = browsers_loop()
        self.drop()
        if loop is None:
            self._draw()
            return
        quick = loop.time() - self._last_seconds < QUICK_SECONDS
        self._last_seconds = loop.time()
        if quick:
            self._waiting = loop.call_later(QUIET_SECONDS, self._draw_now, loop)
        else:
            self._draw_now(loop)

    def flush(self) -> None:
        """The moves that wait are drawn before this returns."""
        if self._waiting is not None:
            self.drop()
            self._draw()

    def drop(self) -> None:
        """The moves that wait are not drawn."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _draw_now(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waiting = None
        self._draw()
        self._last_seconds = loop.time()  # moves that came during the drawing have waited for its end


def browsers_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop, while it handles a message that a browser's widget sent to this kernel; else None."""
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None or kernel.get_parent("shell").get("header", {}).get("msg_type") != "comm_msg":
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
