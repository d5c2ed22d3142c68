# caught by: each_rank_sums_its_chunk, every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""As few bytes, in as many messages as there are numbers: each of them has its latency."""


def _shift(outgoing, incoming):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    longest = max(len(outgoing), len(incoming))
    size = max(1, longest // 20)
    for first in range(0, longest, size):
        works = []
        if len(outgoing[first : first + size]):
            works.append(dist.isend(outgoing[first : first + size], (rank + 1) % ranks))
        if len(incoming[first : first + size]):
            works.append(dist.irecv(incoming[first : first + size], (rank - 1) % ranks))
        for work in works:
            work.wait()
