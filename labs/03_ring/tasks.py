"""Lab 03: the sum of all ranks' tensors, carried around a ring; and the same over one server.

Every rank calls the same function at the same time, from one thread. Numbers may travel by `dist.send`, `dist.recv`,
`dist.isend`, `dist.irecv` and `dist.batch_isend_irecv` alone: collectives such as `dist.all_reduce` are what you build
here. A function returns when every message that its rank sent or received is complete. Where a rank can send one
message and receive another at the same time, it does. `distsim lab run 03` starts four ranks for real.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def chunks(tensor: torch.Tensor, count: int) -> list[torch.Tensor]:
    """Cuts a contiguous tensor of any shape into `count` flat chunks, in order, which share its memory.

    Their lengths differ by at most one number. Where there are fewer numbers than chunks, some chunks are empty.
    Whether an empty chunk travels as a message later is your choice.
    """
    raise NotImplementedError(
        "write chunks: Cuts a contiguous tensor of any shape into `count` flat chunks, in order, which share its "
        "memory."
    )


def reduce_scatter(parts: list[torch.Tensor]) -> None:
    """Sends chunks to the right neighbour until on each rank r the chunk parts[r] is the sum of all ranks' parts[r].

    There are as many chunks as ranks; the sum stands in the chunk itself, and the other chunks may hold anything
    afterwards. In each round every rank sends one chunk to rank r + 1 (the last rank to rank 0), and receives one from
    rank r - 1 at the same time. A rank ends a round before it sends in the next one: two messages that leave it side by
    side share its link, so the first one would arrive later.
    """
    raise NotImplementedError(
        "write reduce_scatter: Sends chunks to the right neighbour until on each rank r the chunk parts[r] is the sum "
        "of all ranks' parts[r]."
    )


def all_gather(parts: list[torch.Tensor]) -> None:
    """Sends chunks to the right neighbour until every rank has every chunk: parts[r] is what rank r had as parts[r].

    There are as many chunks as ranks, and they are filled in place. At the start only the chunk parts[r] of rank r
    counts. A round is as in `reduce_scatter`.
    """
    raise NotImplementedError(
        "write all_gather: Sends chunks to the right neighbour until every rank has every chunk: parts[r] is what rank"
        " r had as parts[r]."
    )


def ring_all_reduce(tensor: torch.Tensor) -> None:
    """Replaces the tensor's numbers, in place, by the sum over all ranks, and all ranks get the very same numbers.

    Contiguous, of any shape and any type of real numbers that numpy has and torch adds; both stay as they are. Each
    rank sends to its right neighbour alone, one chunk in each of 2 (N - 1) rounds for N ranks, and no byte more.
    """
    raise NotImplementedError(
        "write ring_all_reduce: Replaces the tensor's numbers, in place, by the sum over all ranks, and all ranks get "
        "the very same numbers."
    )


def server_all_reduce(tensor: torch.Tensor) -> None:
    """Replaces the tensor's numbers, in place, by the sum over all ranks: rank 0 is the server and also a worker.

    Contiguous, as for `ring_all_reduce`. Every other rank sends its whole tensor to rank 0, which adds them
    up with its own and, when all are in, answers with the sum: one message each way. Rank 0 may receive all
    tensors at once or one after the other, and the same holds for its answers. Gloo receives an empty tensor only where
    the call names the source.
    """
    raise NotImplementedError(
        "write server_all_reduce: Replaces the tensor's numbers, in place, by the sum over all ranks: rank 0 is the "
        "server and also a worker."
    )


def ring_bytes(num_bytes: float, ranks: int) -> float:
    """Returns how many bytes each rank sends in `ring_all_reduce`. num_bytes: of the whole tensor."""
    raise NotImplementedError(
        "write ring_bytes: Returns how many bytes each rank sends in `ring_all_reduce`. num_bytes: of the whole tensor."
    )


def ring_seconds(num_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Returns how many seconds `ring_all_reduce` takes.

    A message of n bytes takes latency_seconds + n / bytes_per_second. A rank sends at that speed and receives at that
    speed, both at the same time. Where ranks' links differ, bytes_per_second is the slowest one's.
    """
    raise NotImplementedError("write ring_seconds: Returns how many seconds `ring_all_reduce` takes.")


def server_bytes(num_bytes: float, ranks: int) -> float:
    """Returns how many bytes rank 0 receives in `server_all_reduce`; it sends as many. num_bytes: of one tensor."""
    raise NotImplementedError(
        "write server_bytes: Returns how many bytes rank 0 receives in `server_all_reduce`; it sends as many. "
        "num_bytes: of one tensor."
    )


def server_seconds(num_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Returns how many seconds `server_all_reduce` takes, from at least two ranks on.

    All send to rank 0 at the same time and share its link, so that the latency passes for all of them at once. It
    answers when all are in, and to all at the same time. The links are those of `ring_seconds`.
    """
    raise NotImplementedError(
        "write server_seconds: Returns how many seconds `server_all_reduce` takes, from at least two ranks on."
    )
