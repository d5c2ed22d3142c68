"""What the C library does with memory that a model gives back: it keeps the memory for the next step.

Each step of training takes and gives back the same activations and gradients. By default glibc returns what lies free
at the end of its heap to Linux, and in the next step Linux maps each page anew. Whether a step meets this depends on
what else lies at the end of the heap, so it is luck: a CNN with steps of 30 ms took 36 ms with its 2,300 page faults.
A profile and a real run of the same model could then differ by that much.
"""

from __future__ import annotations

import ctypes
import sys

# The parameters and their numbers are those of mallopt(3).
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 2**30  # free at the end of the heap
LARGEST_BYTES = 32 * 2**20  # of one block of the heap: as far as glibc itself raises this limit


def keep_freed_memory() -> bool:
    """Lets this process keep up to 1 GiB of freed memory from now on. Returns whether it does: only glibc can.

    Blocks of more than 32 MiB still go back to Linux at once, as they do by default.

    >>> keep_freed_memory() or not sys.platform.startswith("linux")
    True
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if mallopt is None:
        return False
    limits = {MMAP_THRESHOLD: LARGEST_BYTES, TRIM_THRESHOLD: KEPT_BYTES}
    return all(mallopt(parameter, size) == 1 for parameter, size in limits.items())
