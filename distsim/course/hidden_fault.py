"""A fault for learners to find in a trace: one worker of a real run is slow, and nobody says which."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from distsim.runtime.busy_program import busy_program


@contextmanager
def hidden_fault(workers: int) -> Iterator[Callable[[], str]]:
    """Slows down one of the workers of a pinned run (`distsim.measure`) until the block ends.

    It yields a function that tells which worker it was, and why it was slow.

    >>> with hidden_fault(workers=1) as tell:
    ...     pass
    >>> tell()
    'Worker 0 was slow: a program that only counted ran on the same core.'
    """
    chosen = random.randrange(workers)
    with busy_program(beside=chosen):
        yield lambda: f"Worker {chosen} was slow: a program that only counted ran on the same core."
