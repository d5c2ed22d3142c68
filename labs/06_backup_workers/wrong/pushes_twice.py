# caught by: synchronous_training, updates_from_the_first, updates_in_time, late_workers_are_answered_at_once, one_push_and_one_answer, everybody_stops
"""Each push goes out a second time, and the server throws that away."""


def work(parameters, gradient):
    server = dist.get_world_size() - 1
    version, answer = 0, torch.empty(1 + len(parameters), dtype=torch.float64)
    while version != STOP:
        push = torch.cat([torch.tensor([float(version)], dtype=torch.float64), gradient(parameters, version)])
        dist.send(push, server)
        dist.send(push, server, tag=1)
        dist.recv(answer, server)
        version = int(answer[0])
        parameters.copy_(answer[1:])


def serve(parameters, updates, wait_for, learning_rate):
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks = torch.zeros_like(parameters), []
        while len(ranks) < wait_for:
            worker = dist.recv(push)
            dist.recv(push, worker, tag=1)
            if int(push[0]) == version:
                total += push[1:]
                ranks.append(worker)
            else:
                answer(worker, version, parameters)
        parameters -= learning_rate * total / wait_for
        for worker in ranks:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for _ in range(dist.get_world_size() - 1 - wait_for):
        worker = dist.recv(push)
        dist.recv(push, worker, tag=1)
        answer(worker, STOP, parameters)
    return used
