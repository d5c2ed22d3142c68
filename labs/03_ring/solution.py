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
    # write
    return list(tensor.view(-1).tensor_split(count))
    # end


# write
def _shift(outgoing: torch.Tensor, incoming: torch.Tensor) -> None:
    """One round: a chunk goes to the right neighbour while another one comes from the left."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    sending = dist.P2POp(dist.isend, outgoing, (rank + 1) % ranks)
    receiving = dist.P2POp(dist.irecv, incoming, (rank - 1) % ranks)
    for work in dist.batch_isend_irecv([sending, receiving]):
        work.wait()


# end
def reduce_scatter(parts: list[torch.Tensor]) -> None:
    """Sends chunks to the right neighbour until on each rank r the chunk parts[r] is the sum of all ranks' parts[r].

    There are as many chunks as ranks; the sum stands in the chunk itself, and the other chunks may hold anything
    afterwards. In each round every rank sends one chunk to rank r + 1 (the last rank to rank 0), and receives one from
    rank r - 1 at the same time. A rank ends a round before it sends in the next one: two messages that leave it side by
    side share its link, so the first one would arrive later.
    """
    # write
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        mine = parts[(rank - 1 - turn) % ranks]
        sum_so_far = parts[(rank - 2 - turn) % ranks]
        arriving = torch.empty_like(sum_so_far)
        _shift(mine, arriving)
        sum_so_far += arriving
    # end


def all_gather(parts: list[torch.Tensor]) -> None:
    """Sends chunks to the right neighbour until every rank has every chunk: parts[r] is what rank r had as parts[r].

    There are as many chunks as ranks, and they are filled in place. At the start only the chunk parts[r] of rank r
    counts. A round is as in `reduce_scatter`.
    """
    # write
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for turn in range(ranks - 1):
        _shift(parts[(rank - turn) % ranks], parts[(rank - turn - 1) % ranks])
    # end


def ring_all_reduce(tensor: torch.Tensor) -> None:
    """Replaces the tensor's numbers, in place, by the sum over all ranks, and all ranks get the very same numbers.

    Contiguous, of any shape and any type of real numbers that numpy has and torch adds; both stay as they are. Each
    rank sends to its right neighbour alone, one chunk in each of 2 (N - 1) rounds for N ranks, and no byte more.
    """
    # write
    parts = chunks(tensor, dist.get_world_size())
    reduce_scatter(parts)
    all_gather(parts)
    # end


def server_all_reduce(tensor: torch.Tensor) -> None:
    """Replaces the tensor's numbers, in place, by the sum over all ranks: rank 0 is the server and also a worker.

    Contiguous, as for `ring_all_reduce`. Every other rank sends its whole tensor to rank 0, which adds them
    up with its own and, when all are in, answers with the sum: one message each way. Rank 0 may receive all
    tensors at once or one after the other, and the same holds for its answers. Gloo receives an empty tensor only where
    the call names the source.
    """
    # write
    others = range(1, dist.get_world_size())
    if dist.get_rank() == 0:
        pushed = [torch.empty_like(tensor) for _ in others]
        for receiving in [dist.irecv(one, other) for one, other in zip(pushed, others, strict=True)]:
            receiving.wait()
        for one in pushed:
            tensor += one
        for sending in [dist.isend(tensor, other) for other in others]:
            sending.wait()
    else:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
    # end


def ring_bytes(num_bytes: float, ranks: int) -> float:
    """Returns how many bytes each rank sends in `ring_all_reduce`. num_bytes: of the whole tensor."""
    # write
    return 2 * (ranks - 1) / ranks * num_bytes
    # end


def ring_seconds(num_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Returns how many seconds `ring_all_reduce` takes.

    A message of n bytes takes latency_seconds + n / bytes_per_second. A rank sends at that speed and receives at that
    speed, both at the same time. Where ranks' links differ, bytes_per_second is the slowest one's.
    """
    # write
    return 2 * (ranks - 1) * (latency_seconds + num_bytes / ranks / bytes_per_second)
    # end


def server_bytes(num_bytes: float, ranks: int) -> float:
    """Returns how many bytes rank 0 receives in `server_all_reduce`; it sends as many. num_bytes: of one tensor."""
    # write
    return (ranks - 1) * num_bytes
    # end


def server_seconds(num_bytes: float, ranks: int, bytes_per_second: float, latency_seconds: float) -> float:
    """Returns how many seconds `server_all_reduce` takes, from at least two ranks on.

    All send to rank 0 at the same time and share its link, so that the latency passes for all of them at once. It
    answers when all are in, and to all at the same time. The links are those of `ring_seconds`.
    """
    # write
    return 2 * (latency_seconds + (ranks - 1) * num_bytes / bytes_per_second)
    # end
