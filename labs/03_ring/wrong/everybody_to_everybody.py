# caught by: the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Whole tensors from each rank to all the others: no rank talks to its right neighbour alone."""


def ring_all_reduce(tensor):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    everybody = [tensor.clone() if other == rank else torch.empty_like(tensor) for other in range(ranks)]
    others = [other for other in range(ranks) if other != rank]
    works = [dist.isend(everybody[rank], other) for other in others]
    works += [dist.irecv(everybody[other], other) for other in others]
    for work in works:
        work.wait()
    tensor.copy_(sum(everybody))
