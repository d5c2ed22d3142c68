# caught by: synchronous_training, updates_from_the_first
"""Takes a gradient of zeros for none."""


def serve(parameters, updates, wait_for, learning_rate):
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks = torch.zeros_like(parameters), []
        while len(ranks) < wait_for:
            worker = dist.recv(push)
            if int(push[0]) == version and push[1:].any():
                total += push[1:]
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
