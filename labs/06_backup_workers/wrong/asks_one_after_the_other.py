# caught by: updates_from_the_first, updates_in_time, late_workers_are_answered_at_once, everybody_stops
"""Takes pushes in the order of ranks; whoever comes first has to wait for its turn."""


def serve(parameters, updates, wait_for, learning_rate):
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks = torch.zeros_like(parameters), list(range(wait_for))
        for worker in ranks:
            dist.recv(push, worker)
            total += push[1:]
        parameters -= learning_rate * total / wait_for
        for worker in ranks:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for worker in range(wait_for, dist.get_world_size() - 1):
        dist.recv(push, worker)
        answer(worker, STOP, parameters)
    return used
