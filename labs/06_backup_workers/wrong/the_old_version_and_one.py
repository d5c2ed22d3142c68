# caught by: updates_from_the_first, late_workers_are_answered_at_once
"""A late worker is told the version after its own, which may be an old one, too."""


def serve(parameters, updates, wait_for, learning_rate):
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks = torch.zeros_like(parameters), []
        while len(ranks) < wait_for:
            worker = dist.recv(push)
            if int(push[0]) == version:
                total += push[1:]
                ranks.append(worker)
            else:
                answer(worker, push[0] + 1, parameters)
        parameters -= learning_rate * total / wait_for
        for worker in ranks:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for _ in range(dist.get_world_size() - 1 - wait_for):
        answer(dist.recv(push), STOP, parameters)
    return used
