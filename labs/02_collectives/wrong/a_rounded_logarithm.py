# caught by: broadcast_in_few_rounds, reduce_in_few_rounds, all_reduce_alike_to_the_last_bit
"""As many rounds as log2 N rounded: for 5 ranks one too few."""

import math


def _doubling(ranks):
    return [1 << power for power in range(round(math.log2(ranks)))]
