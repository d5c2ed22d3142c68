# caught by: reduce_in_few_rounds
"""Ranks other than the root return what they have added so far."""


def reduce(tensor, root):
    ranks = dist.get_world_size()
    place = (dist.get_rank() - root) % ranks
    total, other = tensor.clone(), torch.empty_like(tensor)
    for distance in reversed(_doubling(ranks)):
        if place < distance and place + distance < ranks:
            dist.recv(other, src=(root + place + distance) % ranks)
            total += other
        elif distance <= place < 2 * distance:
            dist.send(total, dst=(root + place - distance) % ranks)
    return total
