# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Everybody gets everybody's whole tensor, and adds up alone."""


def ring_all_reduce(tensor):
    everybody = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, tensor.clone())
    tensor.copy_(sum(everybody))
