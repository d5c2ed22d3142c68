# caught by: reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""A buffer of one type of numbers for tensors of all types."""


def reduce(tensor, root):
    ranks = dist.get_world_size()
    place = (dist.get_rank() - root) % ranks
    total, other = tensor.double(), torch.empty(tensor.shape, dtype=torch.float64)
    for distance in reversed(_doubling(ranks)):
        if place < distance and place + distance < ranks:
            dist.recv(other, src=(root + place + distance) % ranks)
            total += other
        elif distance <= place < 2 * distance:
            dist.send(total, dst=(root + place - distance) % ranks)
    return total.to(tensor.dtype) if place == 0 else None
