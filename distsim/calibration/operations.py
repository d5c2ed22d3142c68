"""The operations that a calibration measures, and their cost on N workers: latency a, B bytes per second, S bytes.

    all_reduce          2 (N - 1) (a + S / (N B)) k     the backend's all-reduce, which is a ring
    ring_schedule       2 (N - 1) (a + S / (N B)) k     distsim's ring schedule, over point-to-point messages
    parameter_server    2 (a + N S / B)                 pushes and answers together
    gather, broadcast   a + N S / B                     the pushes alone, the answers alone
    point_to_point      a + S / B                       one message
    apply               a + S / B                       the server's own work for an update
    compute             (a + S / B) k                   forward and backward; S counts samples, not bytes
    bucket_mean         a + S / B                       one worker's all-reduce of a bucket under DDP, without messages:
                                                        a to call it, and S / B to divide the bucket
    ddp                 (a + S / B) k                   a step under DDP without the last bucket's all-reduce; S counts
                                                        buckets, and the batch is the largest measured batch
    units               (a + S / B) k                   forward and backward unit by unit, as sharded training computes
                                                        them, on one worker; S counts units, and the batch is
                                                        the largest

k is the oversubscription, ranks / cores and at least 1: if all ranks work at once and outnumber the cores, each
operation takes k times as long. (a and B are those of Hockney 1994, The communication challenge for MPP; k is added
here.) One process serves a server's link, so k does not apply to that link. On emulated links the shaper limits the
bytes, so k applies only to the latency of a message and to a model's compute.

Where workers compute a model and sum among themselves, the simulator shares the cores (`distsim.cores`) in place of k.
The core-seconds of one rank in an all-reduce have the same two terms, without k, beside those of the call.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from distsim.theory import collectives

Operation = Literal[
    "all_reduce",
    "ring_schedule",
    "parameter_server",
    "gather",
    "broadcast",
    "point_to_point",
    "apply",
    "compute",
    "bucket_mean",
    "ddp",
    "units",
]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
Correction = Literal["turn", "schedule_turn", "wake", "hand_over"]  # seconds on top of the lines of operations
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
ALL_AT_ONCE = ("all_reduce", "ring_schedule", "compute", "ddp", "units")
BESIDE_A_SERVER = ("parameter_server", "gather", "broadcast", "apply")  # measured with one more rank, the server
OF_MODELS: dict[Operation, str] = {"compute": "sample", "ddp": "bucket", "units": "unit"}  # what they count, not bytes

TITLES: dict[Operation, str] = {
    "all_reduce": "all-reduce, backend",
    "ring_schedule": "all-reduce, ring schedule",
    "parameter_server": "parameter server",
    "gather": "gather (pushes)",
    "broadcast": "broadcast (answers)",
    "point_to_point": "point to point",
    "apply": "server's own work",
    "compute": "compute",
    "bucket_mean": "mean of a bucket",
    "ddp": "step under DDP",
    "units": "compute unit by unit",
}


class Oversubscription(NamedTuple):
    """How many times longer an operation takes because ranks share cores: its latency, and its bytes."""

    message: float
    byte: float


NOT_OVERSUBSCRIBED = Oversubscription(1.0, 1.0)


def oversubscription(operation: Operation, ranks: int, cores: int, *, emulated: bool) -> Oversubscription:
    """The oversubscription of `cores` by `ranks`.

    >>> oversubscription("compute", ranks=4, cores=2, emulated=True)
    Oversubscription(message=2.0, byte=2.0)
    >>> oversubscription("all_reduce", ranks=4, cores=2, emulated=True)
    Oversubscription(message=2.0, byte=1.0)
    """
    if operation not in ALL_AT_ONCE:
        return NOT_OVERSUBSCRIBED
    factor = max(1.0, ranks / cores)
    return Oversubscription(factor, 1.0 if emulated and operation not in OF_MODELS else factor)


def message_amount(operation: Operation, workers: int, amount: float) -> float:
    """The size of one message of an operation: rings send chunks of S / N, all others send S at once.

    >>> message_amount("all_reduce", workers=4, amount=4e6)
    1000000.0
    """
    return amount / workers if operation in ("all_reduce", "ring_schedule") else amount


def terms(operation: Operation, workers: int, amount: float, shared: Oversubscription) -> tuple[float, float]:
    """The factors of a and of 1 / B in the cost formula, one row for `fit_line`; amount: S.

    >>> terms("all_reduce", workers=4, amount=4e6, shared=Oversubscription(2.0, 2.0))
    (12.0, 12000000.0)
    >>> terms("gather", workers=4, amount=4e6, shared=NOT_OVERSUBSCRIBED)
    (1.0, 16000000.0)
    """
    match operation:
        case "all_reduce" | "ring_schedule":
            messages = collectives.ring_all_reduce_seconds(0.0, workers, 1.0, 1.0)
            carried = collectives.ring_all_reduce_seconds(amount, workers, 1.0, 0.0)
        case "parameter_server":
            messages = collectives.parameter_server_seconds(0.0, workers, 1.0, 1.0)
            carried = collectives.parameter_server_seconds(amount, workers, 1.0, 0.0)
        case "gather" | "broadcast":
            messages, carried = 1.0, workers * amount
        case "point_to_point" | "apply" | "compute" | "bucket_mean" | "ddp" | "units":
            messages, carried = 1.0, amount
    return messages * shared.message, carried * shared.byte
