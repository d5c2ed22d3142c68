"""The cores of one machine that all its ranks share, and what computing and exchanging cost on them.

A scenario says nothing of cores: they belong to the machine that a calibration measured. The simulator shares cores as
it shares links, max-min fairly. A rank computes on one core at most, its exchanges go on beside on one more, and all
ranks together have the machine's cores, also where each emulated host keeps to its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le

from distsim.units import BOUNDS

LONGEST_SECONDS = BOUNDS["second"][1]
CoreSeconds = Annotated[float, Ge(0.0), Le(LONGEST_SECONDS)]


def in_words(cores: int) -> str:
    """The number of cores, in sentences.

    >>> in_words(1), in_words(2)
    ('1 core', '2 cores')
    """
    return "1 core" if cores == 1 else f"{cores} cores"


@dataclass(frozen=True)
class Cores:
    """Cores, and costs in core-seconds. A core-second is the work that one core does in a second while others rest.

    capacity: core-seconds per second of all cores together; less than their number, since busy cores share memory and
    caches. step_seconds: of a worker's forward, backward and update in one step. call_seconds: of calling an
    all-reduce, whatever its size and its number of messages. message_seconds: of sending one message, and again of
    receiving it; byte_seconds: of each of its bytes, no faster than the end's own link could carry them.
    bucket_byte_seconds: of each byte of a bucket, which DDP divides by the number of workers before the all-reduce.
    count: the number of cores. turn_seconds: how much longer a message takes that is sent while so many workers go on
    computing; arrival_turn_seconds: that arrives then. The threads that carry it wait for their turns on the cores,
    twice as long where twice as many workers compute. wake_seconds: until a worker that waited for parameters computes,
    since the thread that has gathered them is still on its core. Meanwhile messages wait for their turns as if it
    computed, but it takes no time of the core from others.
    """

    __pydantic_config__: ClassVar = {"strict": True, "extra": "forbid", "allow_inf_nan": False}  # for files

    capacity: Annotated[float, Gt(0.0), Le(1e6)]
    step_seconds: CoreSeconds = 0.0
    call_seconds: CoreSeconds = 0.0
    message_seconds: CoreSeconds = 0.0
    byte_seconds: CoreSeconds = 0.0
    bucket_byte_seconds: CoreSeconds = 0.0
    count: Annotated[int, Ge(1)] = 1
    turn_seconds: CoreSeconds = 0.0
    arrival_turn_seconds: CoreSeconds = 0.0
    wake_seconds: CoreSeconds = 0.0
