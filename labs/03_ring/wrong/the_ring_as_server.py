# caught by: the_server_sums
"""The right sum, and rank 0 is nobody's server."""


def server_all_reduce(tensor):
    ring_all_reduce(tensor)
