# caught by: nobody_waits
"""A worker makes at most a hundred pushes."""


def work(parameters, gradient):
    server = dist.get_world_size() - 1
    news = torch.empty(1 + len(parameters), dtype=torch.float64)
    for push in range(100):
        dist.send(with_head(push, gradient(parameters, push)), server)
        dist.recv(news, server)
        parameters.copy_(news[1:])
        if news[0] == STOP:
            return
