# caught by: updates_from_the_first, updates_in_time, late_workers_are_answered_at_once, everybody_stops
"""Who is late once sits idle until all others are done."""


def serve(parameters, updates, wait_for, learning_rate):
    used, push = [], torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(updates):
        total, ranks, late = torch.zeros_like(parameters), [], []
        while len(ranks) < wait_for:
            worker = dist.recv(push)
            if int(push[0]) == version:
                total += push[1:]
                ranks.append(worker)
            else:
                late.append(worker)
        parameters -= learning_rate * total / wait_for
        for worker in ranks + late:
            answer(worker, version + 1 if version + 1 < updates else STOP, parameters)
        used.append(ranks)
    for _ in range(dist.get_world_size() - 1 - wait_for - len(late)):
        answer(dist.recv(push), STOP, parameters)
    return used
