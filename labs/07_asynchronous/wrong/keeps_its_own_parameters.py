# caught by: asynchronous_updates, everybody_stops, one_push_and_one_answer
"""The worker does not take what the server answers."""


def work(parameters, gradient):
    server, push = dist.get_world_size() - 1, 0
    news = torch.empty(1 + len(parameters), dtype=torch.float64)
    while push == 0 or news[0] != STOP:
        dist.send(with_head(push, gradient(parameters, push)), server)
        dist.recv(news, server)
        push += 1
