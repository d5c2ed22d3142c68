"""What long work is doing now, on standard error: a line in a terminal, a bar in a notebook, nothing in a pipe.

Long work takes a `Report` and calls it with a `Phase` whenever it begins something else, or has come further. `bar` is
the report that a person sees. The environment variable TQDM_DISABLE=1, which is tqdm's own, turns all of it off, so
that outputs can be compared. This module loads quickly: the command line shows `line` before its other imports.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

DELAY_SECONDS = 0.5  # after which the progress of a loop is shown; work that ends sooner shows nothing
TICK_SECONDS = 1.0  # between two drawings of a line while nothing is reported: the clock in it goes on
BAR_COLUMNS, LEAST_COLUMNS = 20, 30  # of a terminal: of the bar, and of the words beside it
USUAL_COLUMNS, USUAL_ROWS = 80, 24
NO_DRAWING_OF_ITS_OWN = 1e-9  # tqdm's delay: above 0, it draws nothing before it is told to
UNITS = ((100.0, 1.0, "s"), (6000.0, 60.0, "min"), (172800.0, 3600.0, "h"), (float("inf"), 86400.0, "days"))


@dataclass(frozen=True)
class Phase:
    """What work is doing now. doing: in a few words, such as "starting 6 processes" or "step 12 of 50".

    done, of: how far the whole work is, for a bar; of = 0 where that is not known. seconds: how long the whole work is
    expected to take, from its start; None where that is not known.

    >>> Phase("starting 6 processes", seconds=12.0).share
    0.0
    """

    doing: str
    done: int = 0
    of: int = 0
    seconds: float | None = None

    @classmethod
    def counted(cls, what: str, done: int, of: int, seconds: float | None = None) -> Phase:
        """The phase of work that consists of `of` equal parts, of which `done` are done.

        >>> Phase.counted("step", 12, 50).doing
        'step 12 of 50'
        """
        return cls(f"{what} {done} of {of}", done, of, seconds)

    @property
    def share(self) -> float:
        """The share of the work that is done, from 0 to 1; 0 where that is not known."""
        return self.done / self.of if self.of else 0.0


Report = Callable[[Phase], object]
SHARE = 1000  # of an equal part of work, in the units of a bar


def part(report: Report, what: str, done: int, of: int, seconds: float | None = None) -> Report:
    """The report of one of `of` equal parts, after `done` parts are done: one bar and one time are for all parts.

    seconds: how long all parts are expected to take.

    >>> part(lambda phase: print(phase.doing, phase.share), "run", 1, 4)(Phase.counted("step", 12, 24))
    run 2 of 4: step 12 of 24 0.375
    """

    def tell(phase: Phase) -> None:
        here = round(SHARE * (done + phase.share))
        report(Phase(f"{what} {done + 1} of {of}: {phase.doing}", here, SHARE * of, seconds))

    return tell


def about(seconds: float) -> str:
    """An estimate in words.

    >>> [about(seconds) for seconds in (0.2, 41.3, 130.0, 40 * 3600.0)]
    ['about 1 s', 'about 41 s', 'about 2 min', 'about 40 h']
    """
    size, name = next((size, name) for most, size, name in UNITS if seconds < most)
    return f"about {max(1, round(seconds / size)):,} {name}"


def progress(
    items: Iterable[Any], label: str, total: int | None = None, name: Callable[[Any], str] | None = None
) -> Iterator[Any]:
    """Yields `items`. In a terminal or a notebook, their progress is shown if they take longer than `DELAY_SECONDS`.

    name: of an item, to be shown while the item is in work.

    >>> list(progress([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    known = len(items) if total is None and isinstance(items, Sized) else total or 0
    with _shown(label, DELAY_SECONDS) as shown:
        if isinstance(shown, _Nothing):
            yield from items
            return
        for done, item in enumerate(items):
            counted = f"{done} of {known}" if known else str(done)
            shown.tell(Phase(f"{counted}, {name(item)}" if name else counted, done, known))
            yield item


@contextmanager
def bar(label: str, *, shown: bool = True) -> Iterator[Report]:
    """Shows what work is doing. The work calls the yielded function with each `Phase`. shown: whether anybody looks.

    >>> with bar("backup_server") as report:
    ...     report(Phase.counted("step", 1, 2))
    """
    with _shown(label, 0.0) if shown else _hidden() as line:
        line.tell(Phase("preparing"))
        yield line.tell


@contextmanager
def opening(text: str) -> Iterator[None]:
    """Shows `text` in a terminal until the block ends. Needs no import, so that it comes at once."""
    if not _on_terminal():
        yield
        return
    _write(f"\r{text} …")
    try:
        yield
    finally:
        _wipe()


def wiped() -> None:
    """Wipes the line of `opening`, for a process that ends before the block does."""
    if _on_terminal():
        _wipe()


class _Line(Protocol):
    def tell(self, phase: Phase) -> None: ...


class _Nothing:
    """Where nobody looks."""

    def tell(self, phase: Phase) -> None:
        pass


class _Part:
    """Work within other work that is shown already: its phases take the place of the other's phase."""

    def __init__(self, label: str, whole: _Shown) -> None:
        self._label, self._whole, self._before = label, whole, whole.phase

    def tell(self, phase: Phase) -> None:
        self._whole.tell(replace(self._before, doing=f"{self._label}: {phase.doing}"))

    def end(self) -> None:
        self._whole.tell(self._before)


class _Shown:
    """A phase on display. In a terminal it is drawn when it changes, and every `TICK_SECONDS`."""

    def __init__(self, label: str, delay_seconds: float) -> None:
        self.phase = Phase("")
        self._label = label
        self._expected: float | None = None
        self._terminal = _on_terminal()
        self._due = time.monotonic() + delay_seconds
        self._drawn: Any = None  # tqdm's bar
        self._ended = threading.Event()
        self._lock = threading.Lock()
        if self._terminal:
            first = delay_seconds or TICK_SECONDS
            threading.Thread(target=self._tick, args=(first,), name="distsim-progress", daemon=True).start()

    def tell(self, phase: Phase) -> None:
        with self._lock:
            before, self.phase = self.phase, phase
            self._expected = phase.seconds or self._expected
            if phase != before and time.monotonic() >= self._due and not self._ended.is_set():
                self._draw()

    def end(self) -> None:
        """Nothing is left of it, also where the work was interrupted."""
        self._ended.set()
        with self._lock:
            if self._drawn is None:
                return
            self._drawn.total = self._drawn.n  # a notebook would keep a bar that is not full, in red
            self._drawn.close()
            if self._terminal:
                _wipe()  # also the ^C of an interrupt, which tqdm did not write

    def _tick(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            with self._lock:
                if not self._ended.is_set():
                    self._draw()
            seconds = TICK_SECONDS

    def _draw(self) -> None:
        phase = self.phase
        if self._drawn is None:
            # tqdm takes a terminal that does not tell its size for one without rows, and draws nothing there.
            size = {"ncols": _columns() - 1, "nrows": USUAL_ROWS} if self._terminal else {}
            self._drawn = _tqdm()(total=phase.of or None, leave=False, delay=NO_DRAWING_OF_ITS_OWN, **size)
        clock = "{elapsed}" + (f", {about(self._expected)} expected" if self._expected else "")
        words = f"{self._label}: {phase.doing}"
        columns = f"{{bar:{BAR_COLUMNS}}}" if self._terminal else "{bar}"
        counted = phase.of > 0
        if self._terminal:
            self._drawn.ncols = _columns() - 1  # it may have been resized
            room = _columns() - len(clock) - 2
            counted = counted and room >= BAR_COLUMNS + LEAST_COLUMNS
            words = _cut(words, room - BAR_COLUMNS - 3 if counted else room)
        self._drawn.n, self._drawn.total = phase.done, phase.of or None
        self._drawn.bar_format = f"{{desc}} |{columns}| {clock}" if counted else f"{{desc}} {clock}"
        self._drawn.set_description_str(words, refresh=False)
        # tqdm's own lock stays locked after a Ctrl-C in a drawing; the next drawing would wait for it for ever.
        self._drawn.refresh(nolock=True)


def _cut(text: str, most: int) -> str:
    """`text` with at most so many characters: a longer line would not fit into the terminal, and could not be wiped."""
    return text if len(text) <= most else f"{text[: max(most - 1, 0)]}…"


_current: _Shown | _Nothing | None = None  # what is on display now: there is one line at most


@contextmanager
def _shown(label: str, delay_seconds: float) -> Iterator[_Line]:
    if not _watched() or isinstance(_current, _Nothing):
        yield _Nothing()
    elif _current is not None:
        part = _Part(label, _current)
        try:
            yield part
        finally:
            part.end()
    else:
        shown = _Shown(label, delay_seconds)
        try:
            with _as_current(shown):
                yield shown
        finally:
            shown.end()


@contextmanager
def _hidden() -> Iterator[_Line]:
    """Where nobody looks, nor at work within this work."""
    nothing = _Nothing()
    with _as_current(nothing):
        yield nothing


@contextmanager
def _as_current(line: _Shown | _Nothing) -> Iterator[None]:
    global _current
    before, _current = _current, line
    try:
        yield
    finally:
        _current = before


def _tqdm() -> Any:
    """tqdm's bar for here; its import takes a while."""
    if _in_notebook():
        from tqdm.notebook import tqdm as of_notebook

        return of_notebook
    from tqdm import tqdm

    return tqdm


def _watched() -> bool:
    return not _forbidden() and (sys.stderr.isatty() or _in_notebook())


def _on_terminal() -> bool:
    return not _forbidden() and sys.stderr.isatty()


def _forbidden() -> bool:
    return os.environ.get("TQDM_DISABLE", "0") != "0"


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process. Loaded modules are no proof: other programs load them too."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and kernel.IPKernelApp.initialized()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS
    except OSError:
        return USUAL_COLUMNS


def _wipe() -> None:
    _write(f"\r{' ' * (_columns() - 1)}\r")


def _write(text: str) -> None:
    with suppress(OSError):  # the terminal is gone, and the work goes on
        sys.stderr.write(text)
        sys.stderr.flush()
