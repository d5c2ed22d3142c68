# caught by: asynchronous_updates, the_staleness_of_each_update, stale_synchronous_updates, held_until_the_slowest_has_come, everybody_stops, one_push_and_one_answer
"""Both sides write the number behind the vector: they understand each other, and nobody else."""


def with_head(head, tail):
    return torch.cat([tail, torch.tensor([float(head)], dtype=torch.float64)])


def work(parameters, gradient):
    server, push = dist.get_world_size() - 1, 0
    news = torch.empty(1 + len(parameters), dtype=torch.float64)
    while push == 0 or news[-1] != STOP:
        dist.send(with_head(push, gradient(parameters, push)), server)
        dist.recv(news, server)
        parameters.copy_(news[:-1])
        push += 1


def serve_stale_synchronous(parameters, updates, learning_rate, staleness):
    workers = dist.get_world_size() - 1
    steps, read, waiting, used, stopped = [0] * workers, [0] * workers, set(), [], 0
    push = torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(1, updates + 1):
        worker = dist.recv(push)
        parameters -= learning_rate * push[:-1]
        used.append((worker, version - 1 - read[worker]))
        steps[worker] += 1
        waiting.add(worker)
        over = version == updates
        for free in sorted(waiting):
            if over or steps[free] <= min(steps) + staleness:
                waiting.remove(free)
                stopped += over
                read[free] = version
                dist.send(with_head(STOP if over else version, parameters), free)
    for _ in range(workers - stopped):
        dist.send(with_head(STOP, parameters), dist.recv(push))
    return used
