"""Lab 02, written differently: recursion in place of loops, pairs in place of a ring, and an all-reduce by swaps."""

import torch
import torch.distributed as dist


def swap(tensor, to, source):
    incoming = torch.zeros_like(tensor)
    outgoing = dist.isend(tensor.clone(), to)
    dist.recv(incoming, source)
    outgoing.wait()
    return incoming


def shift(tensor):
    ranks = dist.get_world_size()
    if ranks < 2:
        return tensor * 1
    return swap(tensor, (dist.get_rank() + 1) % ranks, (dist.get_rank() + ranks - 1) % ranks)


def scatter(pieces, piece, root):
    if dist.get_rank() == root:
        on_their_way = [dist.isend(pieces[rank], rank) for rank in range(len(pieces)) if rank != root]
        piece[...] = pieces[root]
        for one in on_their_way:
            one.wait()
    else:
        dist.irecv(piece, root).wait()


def gather(piece, root):
    if dist.get_rank() == root:
        whole = torch.stack([piece] * dist.get_world_size())
        coming = [dist.irecv(row, rank) for rank, row in enumerate(whole) if rank != root]
        while coming:
            coming.pop().wait()
        return list(whole.unbind())
    dist.isend(piece, root).wait()
    return None


def halves(first, last, place):
    """The pairs (upper, lower) that this place is in: the first place of a range and that of its second half."""
    if last - first > 1:
        middle = (first + last + 1) // 2
        if place in (first, middle):
            yield first, middle
        yield from halves(first, middle, place) if place < middle else halves(middle, last, place)


def my_pairs(root):
    ranks = dist.get_world_size()
    place = (dist.get_rank() - root) % ranks
    return place, [
        (upper, lower, (root + upper) % ranks, (root + lower) % ranks) for upper, lower in halves(0, ranks, place)
    ]


def broadcast(tensor, root):
    place, pairs = my_pairs(root)
    for upper, _, sender, receiver in pairs:
        dist.send(tensor, receiver) if place == upper else dist.recv(tensor, sender)


def reduce(tensor, root):
    place, pairs = my_pairs(root)
    total = tensor + 0
    for upper, _, receiver, sender in reversed(pairs):
        if place == upper:
            part = torch.zeros_like(total)
            dist.recv(part, sender)
            total = total + part
        else:
            dist.send(total, receiver)
    return total if dist.get_rank() == root else None


def all_gather(piece):
    me, ranks = dist.get_rank(), dist.get_world_size()
    pieces = [torch.zeros_like(piece) for _ in range(ranks)]
    pieces[me] = piece.clone()
    requests = []
    for away in range(1, ranks):
        requests.append(dist.isend(piece, (me + away) % ranks))
        requests.append(dist.irecv(pieces[me - away], (me - away) % ranks))
    for request in requests:
        request.wait()
    return pieces


def all_reduce(tensor):
    me, ranks = dist.get_rank(), dist.get_world_size()
    core = 1
    while 2 * core <= ranks:
        core *= 2
    if me >= core:
        dist.send(tensor, me - core)
        dist.recv(tensor, me - core)
        return
    if me + core < ranks:
        left_over = torch.zeros_like(tensor)
        dist.recv(left_over, me + core)
        tensor += left_over
    distance = 1
    while distance < core:
        tensor += swap(tensor, me ^ distance, me ^ distance)
        distance *= 2
    if me + core < ranks:
        dist.send(tensor, me + core)
