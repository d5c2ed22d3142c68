# caught by: nobody_waits, everybody_stops, one_push_and_one_answer
"""Clears the push for the next gradient while it may still be read."""


def work(parameters, gradient):
    server, push = dist.get_world_size() - 1, 0
    news = torch.empty(1 + len(parameters), dtype=torch.float64)
    mine = torch.empty_like(news)
    while push == 0 or news[0] != STOP:
        mine[0], mine[1:] = push, gradient(parameters, push)
        leaving = dist.isend(mine, server)
        mine.zero_()
        leaving.wait()
        dist.recv(news, server)
        parameters.copy_(news[1:])
        push += 1
