"""Work that takes seconds, off the kernel's main thread: one piece at a time, with progress, and cancelled on request.

A piece of work calls its `report` to tell its progress. Once the piece is cancelled or replaced, that call raises
`CancelledError`, which unwinds the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from distsim.errors import DistsimError
from distsim.progress import Phase, Report


class CancelledError(DistsimError):
    """Raised inside a piece of work that has been cancelled or replaced."""


class Background:
    """Runs one piece of work in a thread of its own; a later piece replaces the earlier piece.

    progress: called with each `Phase` while the current piece works. A replaced piece reports neither progress
    nor an end. All calls to the callbacks are made one at a time.

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
        self._piece: object | None = None
        self._cancelled = False
        self._threads: list[threading.Thread] = []

    @property
    def busy(self) -> bool:
        """Whether the current piece has not yet reported its end."""
        return self._piece is not None

    def start(
        self, work: Callable[[Report], Any], ended: Callable[[Any], object], failed: Callable[[Exception], object]
    ) -> None:
        """Begins `work(report)`. Calls `ended` with its result, or `failed` with its error (`CancelledError` too)."""
        piece = object()
        with self._lock:
            self._piece, self._cancelled = piece, False
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(
                threading.Thread(target=self._do, args=(piece, work, ended, failed), name="distsim-work", daemon=True)
            )
            self._threads[-1].start()

    def cancel(self) -> None:
        """Asks the current piece to end. `failed` is called when the piece has ended."""
        with self._lock:
            self._cancelled = True

    def forget(self) -> None:
        """Drops the current piece: it ends at its next report, and calls neither `ended` nor `failed`."""
        with self._lock:
            self._piece = None

    def wait(self, seconds: float) -> bool:
        """Whether every piece ended within so many seconds, replaced pieces included."""
        for thread in list(self._threads):
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def _do(
        self,
        piece: object,
        work: Callable[[Report], Any],
        ended: Callable[[Any], object],
        failed: Callable[[Exception], object],
    ) -> None:
        def report(phase: Phase) -> None:
            with self._lock:
                if self._piece is not piece or self._cancelled:
                    raise CancelledError("this work is no longer wanted")
                self._progress(phase)

        try:
            found = work(report)
        except DistsimError as error:
            self._tell(piece, failed, error)
        except Exception as error:
            self._tell(piece, failed, error)
            raise  # an error in distsim: the thread's traceback goes to the kernel's log
        else:
            self._tell(piece, ended, found)

    def _tell(self, piece: object, whom: Callable[[Any], object], what: object) -> None:
        with self._lock:
            if self._piece is piece:
                self._piece = None
                whom(what)
