"""What a calibration measures, and what each of these costs on N workers: latency a, B bytes per second, S bytes.

    all_reduce          2 (N - 1) (a + S / (N B)) x crowd     the backend's own, which is a ring
    ring_schedule       the same                              ours, over point-to-point messages
    parameter_server    2 (a + N S / B)                       pushes and answers together
    gather, broadcast   a + N S / B                           the pushes alone, the answers alone
    point_to_point      a + S / B                             a message; a is what it costs however small it is
    apply               a + S / B                             the server's own work for an update
    compute             (a + S / B) x crowd                   forward and backward; S counts samples, not bytes

Where all ranks work at once and outnumber the cores, they take turns: everything lasts crowd = ranks / cores as long
(Hockney 1994, The communication challenge for MPP, has a and B; the crowd is ours). A server's link is one process's
work, whoever else waits. On emulated links the shaper sets the pace of messages, so only compute is crowded there.
"""

from __future__ import annotations

from typing import Literal, get_args

from distsim.theory import collectives

Family = Literal[
    "all_reduce", "ring_schedule", "parameter_server", "gather", "broadcast", "point_to_point", "apply", "compute"
]
FAMILIES: tuple[Family, ...] = get_args(Family)
ALL_AT_ONCE = ("all_reduce", "ring_schedule", "compute")

TITLES: dict[Family, str] = {
    "all_reduce": "all-reduce, backend",
    "ring_schedule": "all-reduce, ring schedule",
    "parameter_server": "parameter server",
    "gather": "gather (pushes)",
    "broadcast": "broadcast (answers)",
    "point_to_point": "point to point",
    "apply": "server's own work",
    "compute": "compute",
}


def terms(family: Family, workers: int, amount: float, crowd: float) -> tuple[float, float]:
    """How often a is paid and how much of 1 / B, as `fit_line` takes them; amount: S.

    >>> terms("all_reduce", workers=4, amount=4e6, crowd=2.0)
    (12.0, 12000000.0)
    >>> terms("gather", workers=4, amount=4e6, crowd=1.0)
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
        case "point_to_point" | "apply" | "compute":
            messages, carried = 1.0, amount
    return messages * crowd, carried * crowd


def crowd_of(family: Family, ranks: int, cores: int, *, emulated: bool) -> float:
    """How many times longer it lasts because ranks take turns on the cores.

    >>> crowd_of("compute", ranks=4, cores=2, emulated=True), crowd_of("all_reduce", ranks=4, cores=2, emulated=True)
    (2.0, 1.0)
    """
    if family not in ALL_AT_ONCE or (emulated and family != "compute"):
        return 1.0
    return max(1.0, ranks / cores)
