"""Progress bars on anything that may take over two seconds; in terminals and notebooks, silent in a pipe.

With TQDM_DISABLE=1 in the environment, which is tqdm's own name for it, there are none: where outputs are compared.
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
    """`items` with a bar that appears after two seconds; on standard error, and only where a person looks.

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
    """A bar for work that reports (done, total) itself.

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
    """A bar that goes when its work ends or is left: a notebook would keep one that is not full, in red."""
    shown = tqdm(desc=label, total=total, delay=DELAY_SECONDS, disable=not _watched(), leave=False)
    try:
        yield shown
    finally:
        shown.total = shown.n
        shown.close()


def _watched() -> bool:
    return os.environ.get("TQDM_DISABLE", "0") == "0" and (sys.stderr.isatty() or _in_notebook())


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process; others may have loaded its modules."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and kernel.IPKernelApp.initialized()
