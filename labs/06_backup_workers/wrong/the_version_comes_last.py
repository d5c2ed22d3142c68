# caught by: synchronous_training, updates_from_the_first, updates_in_time, late_workers_are_answered_at_once, one_push_and_one_answer, everybody_stops
"""Both sides write the version behind the numbers: they understand each other, and nobody else."""


def work(parameters, gradient):
    server = dist.get_world_size() - 1
    version, answer = 0, torch.empty(1 + len(parameters), dtype=torch.float64)
    while version != STOP:
        push = torch.cat([gradient(parameters, version), torch.tensor([float(version)], dtype=torch.float64)])
        dist.send(push, server)
        dist.recv(answer, server)
        version = int(answer[-1])
        parameters.copy_(answer[:-1])


def answer(worker, version, parameters):
    dist.send(torch.cat([parameters, torch.tensor([float(version)], dtype=torch.float64)]), worker)


def serve(parameters, updates, wait_for, learning_rate):
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks = torch.zeros_like(parameters), []
        while len(ranks) < wait_for:
            worker = dist.recv(push)
            if int(push[-1]) == version:
                total += push[:-1]
                ranks.append(worker)
            else:
                answer(worker, version, parameters)
        parameters -= learning_rate * total / wait_for
        for worker in ranks:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for _ in range(dist.get_world_size() - 1 - wait_for):
        answer(dist.recv(push), STOP, parameters)
    return used
