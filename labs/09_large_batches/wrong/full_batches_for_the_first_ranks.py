# caught by: samples_of_each_update
"""The last update gives each rank full shares in turn: rank 0 has all, others none. Right for updates of full size."""


def own_batches(order, batch, accumulated):
    share = batch * accumulated
    updates = []
    for first in range(0, len(order), dist.get_world_size() * share):
        start = first + dist.get_rank() * share
        own = list(order[start : min(start + share, len(order))])
        updates.append([own[place : place + batch] for place in range(0, len(own), batch)])
    return updates
