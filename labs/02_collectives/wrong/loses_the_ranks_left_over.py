# caught by: reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""A tree of the largest power of two: the other ranks are never added."""


def reduce(tensor, root):
    ranks = dist.get_world_size()
    place = (dist.get_rank() - root) % ranks
    core = 1 << (ranks.bit_length() - 1)
    total, other = tensor.clone(), torch.empty_like(tensor)
    for distance in reversed(_doubling(core)):
        if place < distance:
            dist.recv(other, src=(root + place + distance) % ranks)
            total += other
        elif place < 2 * distance:
            dist.send(total, dst=(root + place - distance) % ranks)
    return total if place == 0 else None
