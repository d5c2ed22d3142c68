# caught by: samples_of_each_update, training_as_one_process
"""The second rank takes what the first one leaves. Right for one rank or two."""

_any = own_batches


def own_batches(order, batch, accumulated):
    ranks = dist.get_world_size()
    if ranks < 3:
        return _any(order, batch, accumulated)
    joined = 2 * batch * accumulated
    pieces = [list(order[first : first + joined])[dist.get_rank() % 2 :: 2] for first in range(0, len(order), joined)]
    return [[own[start : start + batch] for start in range(0, len(own), batch)] for own in pieces]
