# caught by: reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Right, and no byte too many, but the first waits for N - 1 messages."""


def reduce(tensor, root):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    place, total, other = (rank - root) % ranks, tensor.clone(), torch.empty_like(tensor)
    if place < ranks - 1:
        dist.recv(other, src=(rank + 1) % ranks)
        total += other
    if place > 0:
        dist.send(total, dst=(rank - 1) % ranks)
        return None
    return total
