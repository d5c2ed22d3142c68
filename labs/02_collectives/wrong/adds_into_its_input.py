# caught by: reduce_in_few_rounds
"""The caller's tensor becomes a part of the sum."""


def reduce(tensor, root):
    ranks = dist.get_world_size()
    place, other = (dist.get_rank() - root) % ranks, torch.empty_like(tensor)
    for distance in reversed(_doubling(ranks)):
        if place < distance and place + distance < ranks:
            dist.recv(other, src=(root + place + distance) % ranks)
            tensor += other
        elif distance <= place < 2 * distance:
            dist.send(tensor, dst=(root + place - distance) % ranks)
    return tensor.clone() if place == 0 else None
