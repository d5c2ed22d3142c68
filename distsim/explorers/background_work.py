"""Work that takes seconds, off the kernel's main thread: one piece at a time, with progress, and cancelled on request.

A piece of work calls its `report` to tell its progress. Once the piece is cancelled, that call raises `CancelledError`,
which unwinds the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from distsim.errors import DistsimError
from distsim.progress import Phase, Report


class CancelledError(DistsimError):
    """Raised inside a piece of work that has been cancelled."""


class Background:
    """Runs one piece of work in a thread of its own. The next piece may start once this one has reported its end.

    progress: called with each `Phase` while the piece works. All calls to the callbacks are made one at a time.

    >>> place, told = Background(lambda phase: None), []
    >>> def work(report):
    ...     report(Phase.counted("step", 1, 2))
    ...     return "found"
    >>> place.start(work, told.append, told.append)
    >>> place.wait(10.0), told
    (True, ['found'])
    """

    def __init__(self, progress: Report) -> None:
        self._progress = progress
        self._lock = threading.RLock()
        self._busy = self._cancelled = False
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether a piece has not yet reported its end."""
        return self._busy

    def start(
        self, work: Callable[[Report], Any], ended: Callable[[Any], object], failed: Callable[[Exception], object]
    ) -> None:
        """Begins `work(report)`. Calls `ended` with its result, or `failed` with its error (`CancelledError` too).

        Raises RuntimeError while busy.
        """
        with self._lock:
            if self._busy:
                raise RuntimeError("a piece of work is under way")
            self._busy, self._cancelled = True, False
            self._thread = threading.Thread(
                target=self._do, args=(work, ended, failed), name="distsim-work", daemon=True
            )
            self._thread.start()

    def cancel(self) -> None:
        """Asks the piece to end. `failed` is called when the piece has ended."""
        with self._lock:
            self._cancelled = True

    def wait(self, seconds: float) -> bool:
        """Whether the piece ended within so many seconds. True where none was started."""
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _do(
        self, work: Callable[[Report], Any], ended: Callable[[Any], object], failed: Callable[[Exception], object]
    ) -> None:
        def report(phase: Phase) -> None:
            with self._lock:
                if self._cancelled:
                    raise CancelledError("this work is no longer wanted")
                self._progress(phase)

        try:
            found = work(report)
        except DistsimError as error:
            self._tell(failed, error)
        except Exception as error:
            self._tell(failed, error)
            raise  # an error in distsim: the thread's traceback goes to the kernel's log
        else:
            self._tell(ended, found)

    def _tell(self, whom: Callable[[Any], object], what: object) -> None:
        with self._lock:
            self._busy = False
            whom(what)
