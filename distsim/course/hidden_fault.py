"""A fault for learners to find in a trace: one worker of a real run is slow, and nobody says which, or why."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from distsim.course.reading_network import slow_disk
from distsim.runtime.busy_program import busy_program

# What makes a worker slow, in words, and what does it to a worker, which may take so many seconds for each step.
CAUSES: dict[str, Callable[[int, float], AbstractContextManager[object]]] = {
    "a program that only counted ran on the same core": lambda worker, _: busy_program(beside=worker),
    "it read its images from a slow disk": slow_disk,
}


@contextmanager
def hidden_fault(workers: int, seconds: float) -> Iterator[Callable[[], str]]:
    """Slows down one of the workers of a pinned run of `reading_network.NETWORK` until the block ends.

    Chance decides whether the worker shares its core with another program, or needs `seconds` more for reading in each
    step. It yields a function that tells which worker it was, and why it was slow.

    >>> with hidden_fault(workers=1, seconds=0.1) as tell:
    ...     pass
    >>> tell().partition(":")[0]
    'Worker 0 was slow'
    """
    chosen, cause = random.randrange(workers), random.choice(list(CAUSES))
    with CAUSES[cause](chosen, seconds):
        yield lambda: f"Worker {chosen} was slow: {cause}."
