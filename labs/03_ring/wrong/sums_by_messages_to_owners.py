# caught by: each_rank_sums_its_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Chunks go straight to the rank that adds them up: as many bytes, and no ring."""


def reduce_scatter(parts):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    others = [other for other in range(ranks) if other != rank]
    arriving = {other: torch.empty_like(parts[rank]) for other in others}
    works = [dist.isend(parts[other], other) for other in others]
    works += [dist.irecv(arriving[other], other) for other in others]
    for work in works:
        work.wait()
    for other in others:
        parts[rank] += arriving[other]
