"""Random streams: one seed, one independent generator per purpose and worker.

Every draw names what it is for, so two policies see the very same stragglers and adding a purpose
moves no other draw. The generators are spawned keys of one numpy `SeedSequence`.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream is for. The numbers are part of the meaning of a seed: never reuse one."""

    COMPUTE = 0
    PAUSE = 1
    FAILURE = 2
    DATA = 3


def stream(seed: int, purpose: Purpose, worker: int) -> np.random.Generator:
    """The generator of one purpose on one worker.

    >>> bool(stream(7, Purpose.COMPUTE, 0).random() == stream(7, Purpose.COMPUTE, 0).random())
    True
    >>> bool(stream(7, Purpose.COMPUTE, 0).random() == stream(7, Purpose.PAUSE, 0).random())
    False
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(int(purpose), worker))))
