"""Lab 02: the collectives of torch.distributed, made of messages between two ranks.

Use send, recv, isend, irecv and batch_isend_irecv of torch.distributed, and none of its collectives. Every rank calls
the same function with the same `root`. Tensors are contiguous. They may have any shape and any type of numbers, and a
tensor may be empty. In one call the tensors of all ranks have the same shape and type; so have the tensors that you
return or fill. To fill a tensor means to write into its memory.

A send may wait until its receiver receives. Code that counts on a send that returns at once will wait for ever one day.
When a function returns, the caller may change its tensors at once. So the rank must have waited for every
message that it has begun, and what is returned shares no memory with what was given.

Times are counted in messages: one message takes a + n / B seconds for n bytes over a link of latency a and bandwidth B.
A rank can send and receive at the same time, but two messages that leave one rank share its link, and so do two that
reach one rank.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.distributed as dist

Tensor = torch.Tensor


# write
def _all_at_once(sends: Mapping[int, Tensor] | None = None, receives: Mapping[int, Tensor] | None = None) -> None:
    """Begins all messages, to and from the ranks named, and only then waits for them."""
    operations = [dist.P2POp(dist.isend, tensor, rank) for rank, tensor in (sends or {}).items()]
    operations += [dist.P2POp(dist.irecv, tensor, rank) for rank, tensor in (receives or {}).items()]
    for request in dist.batch_isend_irecv(operations) if operations else ():
        request.wait()


def _doubling(ranks: int) -> list[int]:
    """1, 2, 4 and so on, as long as they are below the number of ranks."""
    return [1 << power for power in range((ranks - 1).bit_length())]


# end
def shift(tensor: Tensor) -> Tensor:
    """Sends `tensor` to the next rank of a ring, and returns a new tensor with what came from the rank before.

    The last rank's next is rank 0. With one rank, the result is a copy of `tensor`. `tensor` stays as it is. All
    messages travel at the same time, so that for any number of ranks it takes as long as one message.
    """
    # write
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks == 1:
        return tensor.clone()
    received = torch.empty_like(tensor)
    _all_at_once(sends={(rank + 1) % ranks: tensor}, receives={(rank - 1) % ranks: received})
    return received
    # end


def scatter(pieces: list[Tensor] | None, piece: Tensor, root: int) -> None:
    """Fills `piece` on rank i with `pieces[i]` of the root, for every i. On the other ranks `pieces` is None.

    The root sends each rank its own piece, straight there, and nothing else. All pieces are on their way at the same
    time: the latency passes once, not once for each rank.
    """
    # write
    if pieces is None:
        dist.recv(piece, src=root)
        return
    piece.copy_(pieces[root])
    _all_at_once(sends={rank: one for rank, one in enumerate(pieces) if rank != root})
    # end


def gather(piece: Tensor, root: int) -> list[Tensor] | None:
    """Returns on the root the pieces of all ranks, in the order of the ranks; None on the others.

    Each rank sends its own piece straight to the root, and nothing else; the root takes all of them at the same time.
    `piece` stays as it is.
    """
    # write
    if dist.get_rank() != root:
        dist.send(piece, dst=root)
        return None
    pieces = [torch.empty_like(piece) for _ in range(dist.get_world_size())]
    pieces[root].copy_(piece)
    _all_at_once(receives={rank: one for rank, one in enumerate(pieces) if rank != root})
    return pieces
    # end


def broadcast(tensor: Tensor, root: int) -> None:
    """Fills `tensor` on every rank with the root's.

    For N ranks it takes no longer than ceil(log2 N) messages, one after the other; no rank receives more than one
    tensor's bytes.
    """
    # write
    ranks = dist.get_world_size()
    place = (dist.get_rank() - root) % ranks  # counted from the root, which is at place 0
    for distance in _doubling(ranks):  # those at places below `distance` have it by now
        if place < distance and place + distance < ranks:
            dist.send(tensor, dst=(root + place + distance) % ranks)
        elif distance <= place < 2 * distance:
            dist.recv(tensor, src=(root + place - distance) % ranks)
    # end


def reduce(tensor: Tensor, root: int) -> Tensor | None:
    """Returns on the root a new tensor, the sum over all ranks; None on the others. `tensor` stays as it is.

    For N ranks it takes no longer than ceil(log2 N) messages, one after the other; no rank sends more than one
    tensor's bytes.
    """
    # write
    ranks = dist.get_world_size()
    place = (dist.get_rank() - root) % ranks
    total, other = tensor.clone(), torch.empty_like(tensor)
    for distance in reversed(_doubling(ranks)):  # a broadcast backwards
        if place < distance and place + distance < ranks:
            dist.recv(other, src=(root + place + distance) % ranks)
            total += other
        elif distance <= place < 2 * distance:
            dist.send(total, dst=(root + place - distance) % ranks)
    return total if place == 0 else None
    # end


def all_gather(piece: Tensor) -> list[Tensor]:
    """Returns on every rank the pieces of all ranks, in the order of the ranks. `piece` stays as it is.

    For N ranks it takes no longer than N - 1 messages of one piece, one after the other, and no rank sends more than
    N - 1 times the bytes of one piece.
    """
    # write
    rank, ranks = dist.get_rank(), dist.get_world_size()
    pieces = [piece.clone() for _ in range(ranks)]
    for steps in range(1, ranks):
        pieces[(rank - steps) % ranks] = shift(pieces[(rank - steps + 1) % ranks])
    return pieces
    # end


def all_reduce(tensor: Tensor) -> None:
    """Leaves in `tensor`, on every rank, the sum over all ranks: to the last bit the same on each.

    For N ranks it takes no longer than 2 ceil(log2 N) messages, one after the other, and no rank sends more than
    ceil(log2 N) times the tensor's bytes.
    """
    # write
    total = reduce(tensor, root=0)
    if total is not None:
        tensor.copy_(total)
    broadcast(tensor, root=0)
    # end
