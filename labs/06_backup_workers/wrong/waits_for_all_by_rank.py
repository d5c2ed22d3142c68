# caught by: updates_from_the_first
"""Where it waits for all workers, it takes and answers them by rank, not as they come."""


def serve(parameters, updates, wait_for, learning_rate):
    workers = dist.get_world_size() - 1
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks = torch.zeros_like(parameters), []
        while len(ranks) < wait_for:
            worker = dist.recv(push, len(ranks) if wait_for == workers else None)
            if int(push[0]) == version:
                total += push[1:]
                ranks.append(worker)
            else:
                answer(worker, version, parameters)
        parameters -= learning_rate * total / wait_for
        for worker in ranks:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for _ in range(workers - wait_for):
        answer(dist.recv(push), STOP, parameters)
    return used
