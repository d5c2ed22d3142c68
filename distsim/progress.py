"""Progress bars for work that may take over two seconds, in terminals and notebooks; none in a pipe.

The environment variable TQDM_DISABLE=1, which is tqdm's own, turns the bars off, so that outputs can be compared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm

DELAY_SECONDS = 2.0
Report = Callable[[int, int], None]  # (done, of how many)


def progress(items: Iterable[Any], label: str, total: int | None = None) -> Iterator[Any]:
    """Yields `items`. In a terminal or a notebook, a bar appears on standard error after two seconds.

    >>> list(progress([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    known = len(items) if total is None and isinstance(items, Sized) else total
    with _shown(label, known) as shown:
        for item in items:
            yield item
            shown.update()


@contextmanager
def bar(label: str) -> Iterator[Report]:
    """A bar for work that reports its progress by calling the yielded function with (done, total).

    >>> with bar("steps") as report:
    ...     report(1, 2)
    """
    with _shown(label) as shown:

        def report(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        yield report


@contextmanager
def _shown(label: str, total: int | None = None) -> Iterator[Any]:
    """A bar that disappears when its work ends or is left. A notebook would keep a bar that is not full, in red."""
    shown = tqdm(desc=label, total=total, delay=DELAY_SECONDS, disable=not _watched(), leave=False)
    try:
        yield shown
    finally:
        shown.total = shown.n
        shown.close()


def _watched() -> bool:
    return os.environ.get("TQDM_DISABLE", "0") == "0" and (sys.stderr.isatty() or _in_notebook())


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process. Loaded modules are no proof: other programs load them too."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and kernel.IPKernelApp.initialized()
