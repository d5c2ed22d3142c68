# caught by: every_rank_has_every_chunk, the_ring_sums, the_fewest_bytes, the_time_of_a_ring
"""Every rank broadcasts its chunk to all."""


def all_gather(parts):
    for number, part in enumerate(parts):
        dist.broadcast(part, src=number)
