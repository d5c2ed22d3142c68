"""What a calibration measures, and what each of these costs on N workers: latency a, B bytes per second, S bytes.

    all_reduce          2 (N - 1) (a + S / (N B)) x crowd     the backend's own, which is a ring
    ring_schedule       the same                              ours, over point-to-point messages
    parameter_server    2 (a + N S / B)                       pushes and answers together
    gather, broadcast   a + N S / B                           the pushes alone, the answers alone
    point_to_point      a + S / B                             a message; a is what it costs however small it is
    apply               a + S / B                             the server's own work for an update
    compute             (a + S / B) x crowd                   forward and backward; S counts samples, not bytes
    ddp                 (a + S / B) x crowd                   a step under DDP but for the last bucket's all-reduce; S
                                                              counts buckets, and the batch is the largest measured

Where all ranks work at once and outnumber the cores, they take turns: everything lasts crowd = ranks / cores as long
(Hockney 1994, The communication challenge for MPP, has a and B; the crowd is ours). A server's link is one process's
work, whoever else waits. On emulated links the shaper sets the pace of bytes, so that only what a message costs by
itself, and what models compute, is crowded there.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from distsim.theory import collectives

Family = Literal[
    "all_reduce",
    "ring_schedule",
    "parameter_server",
    "gather",
    "broadcast",
    "point_to_point",
    "apply",
    "compute",
    "ddp",
]
FAMILIES: tuple[Family, ...] = get_args(Family)
ALL_AT_ONCE = ("all_reduce", "ring_schedule", "compute", "ddp")
OF_MODELS = ("compute", "ddp")  # their amounts are no bytes

TITLES: dict[Family, str] = {
    "all_reduce": "all-reduce, backend",
    "ring_schedule": "all-reduce, ring schedule",
    "parameter_server": "parameter server",
    "gather": "gather (pushes)",
    "broadcast": "broadcast (answers)",
    "point_to_point": "point to point",
    "apply": "server's own work",
    "compute": "compute",
    "ddp": "step under DDP",
}


class Crowd(NamedTuple):
    """How many times longer it lasts because ranks take turns on the cores: a message by itself, and its bytes."""

    message: float
    byte: float


NO_CROWD = Crowd(1.0, 1.0)


def crowd_of(family: Family, ranks: int, cores: int, *, emulated: bool) -> Crowd:
    """The crowd that `ranks` make on so many cores.

    >>> crowd_of("compute", ranks=4, cores=2, emulated=True)
    Crowd(message=2.0, byte=2.0)
    >>> crowd_of("all_reduce", ranks=4, cores=2, emulated=True)
    Crowd(message=2.0, byte=1.0)
    """
    if family not in ALL_AT_ONCE:
        return NO_CROWD
    crowd = max(1.0, ranks / cores)
    return Crowd(crowd, 1.0 if emulated and family not in OF_MODELS else crowd)


def terms(family: Family, workers: int, amount: float, crowd: Crowd) -> tuple[float, float]:
    """How often a is paid and how much of 1 / B, as `fit_line` takes them; amount: S.

    >>> terms("all_reduce", workers=4, amount=4e6, crowd=Crowd(2.0, 2.0))
    (12.0, 12000000.0)
    >>> terms("gather", workers=4, amount=4e6, crowd=NO_CROWD)
    (1.0, 16000000.0)
    """
    match family:
        case "all_reduce" | "ring_schedule":
            messages = collectives.ring_all_reduce_seconds(0.0, workers, 1.0, 1.0)
            carried = collectives.ring_all_reduce_seconds(amount, workers, 1.0, 0.0)
        case "parameter_server":
            messages = collectives.parameter_server_seconds(0.0, workers, 1.0, 1.0)
            carried = collectives.parameter_server_seconds(amount, workers, 1.0, 0.0)
        case "gather" | "broadcast":
            messages, carried = 1.0, workers * amount
        case "point_to_point" | "apply" | "compute" | "ddp":
            messages, carried = 1.0, amount
    return messages * crowd.message, carried * crowd.byte
