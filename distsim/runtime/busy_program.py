"""A program that takes a core's time from a rank: a genuine straggler for a real run.

`python -m distsim.runtime.busy_program CORE` computes on this core until its standard input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from distsim.runtime.launch import lifeline
from distsim.runtime.launch.owned_process import companion
from distsim.runtime.machine import core_of_rank, pin


@contextmanager
def busy_program(beside: int) -> Iterator[subprocess.Popen[bytes]]:
    """Another program computes on the core of a pinned rank until the block ends, however it ends.

    beside: the rank; see `pinned` of `distsim.measure`. Where a process cannot choose its core, the program computes on
    any core. Raises RunError at the end of the block where the program ended before.

    >>> with busy_program(beside=1) as program:
    ...     alone = program.poll() is None
    >>> alone, program.poll() is None
    (True, False)
    """
    core = core_of_rank(beside)
    where = [] if core is None else [core]
    with companion(f"the busy program beside rank {beside}", __name__, *where) as program:
        yield program


def main() -> None:
    """Computes until the starting process has gone."""
    pin(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    lifeline.keep(lambda: os._exit(0), inherit=False)
    while True:
        pass


if __name__ == "__main__":
    main()
