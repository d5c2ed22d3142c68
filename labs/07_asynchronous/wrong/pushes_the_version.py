# caught by: one_push_and_one_answer
"""The version of the parameters in place of the number of the push."""


def work(parameters, gradient):
    server, version, push = dist.get_world_size() - 1, 0, 0
    news = torch.empty(1 + len(parameters), dtype=torch.float64)
    while version != STOP:
        dist.send(with_head(version, gradient(parameters, push)), server)
        dist.recv(news, server)
        parameters.copy_(news[1:])
        version, push = int(news[0]), push + 1
