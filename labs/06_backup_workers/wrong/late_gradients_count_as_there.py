# caught by: updates_from_the_first, updates_in_time, late_workers_are_answered_at_once, everybody_stops
"""A late gradient is not added, but fills a place: the update is made from fewer."""


def serve(parameters, updates, wait_for, learning_rate):
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks, came = torch.zeros_like(parameters), [], []
        while len(came) < wait_for:
            came.append(dist.recv(push))
            if int(push[0]) == version:
                total += push[1:]
                ranks.append(came[-1])
        parameters -= learning_rate * total / max(len(ranks), 1)
        for worker in came:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for _ in range(dist.get_world_size() - 1 - wait_for):
        answer(dist.recv(push), STOP, parameters)
    return used
