# caught by: the_server_sums
"""A large tensor travels to the server in several messages."""


def server_all_reduce(tensor):
    pieces = tensor.view(-1).split(2**20 // tensor.element_size())
    others = range(1, dist.get_world_size())
    for piece in pieces:
        if dist.get_rank() == 0:
            coming = [torch.empty_like(piece) for _ in others]
            for other, vector in zip(others, coming):
                dist.recv(vector, other)
            for vector in coming:
                piece += vector
            for other in others:
                dist.send(piece, other)
        else:
            dist.send(piece, 0)
            dist.recv(piece, 0)
