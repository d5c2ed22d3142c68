# caught by: all_reduce_alike_to_the_last_bit
"""Three ranks may send two tensors each, and a sum over all pieces is right but for its last bits."""


def all_reduce(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks == 3:
        pieces = all_gather(tensor)
        tensor += pieces[(rank + 1) % ranks]
        tensor += pieces[(rank + 2) % ranks]
        return
    total = reduce(tensor, root=0)
    if total is not None:
        tensor.copy_(total)
    broadcast(tensor, root=0)
