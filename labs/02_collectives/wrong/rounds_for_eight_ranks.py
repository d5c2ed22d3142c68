# caught by: broadcast_in_few_rounds, reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""Three rounds, enough for the eight ranks of the notebook."""


def _doubling(ranks):
    return [distance for distance in (1, 2, 4) if distance < ranks]
