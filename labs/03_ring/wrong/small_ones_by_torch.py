# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""A tensor with fewer numbers than ranks goes by the collective of torch.distributed."""


def ring_all_reduce(tensor):
    if tensor.numel() < dist.get_world_size():
        dist.all_reduce(tensor)
        return
    parts = chunks(tensor, dist.get_world_size())
    reduce_scatter(parts)
    all_gather(parts)
