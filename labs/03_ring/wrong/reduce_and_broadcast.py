# caught by: the_server_sums
"""Two collectives of the back end, which go by a tree."""


def server_all_reduce(tensor):
    dist.reduce(tensor, dst=0)
    dist.broadcast(tensor, src=0)
