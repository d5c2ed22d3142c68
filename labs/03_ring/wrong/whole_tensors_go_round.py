# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""N - 1 rounds with whole tensors; each rank adds in another order, and so gets another last digit."""


def ring_all_reduce(tensor):
    travelling = tensor.clone()
    for _ in range(dist.get_world_size() - 1):
        arriving = torch.empty_like(tensor)
        _shift(travelling, arriving)
        tensor += arriving
        travelling = arriving
