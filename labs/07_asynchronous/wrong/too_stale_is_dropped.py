# caught by: stale_synchronous_updates
"""Answers a gradient that seems too stale, and does not apply it: the bound holds workers, and drops nothing."""


def serve_stale_synchronous(parameters, updates, learning_rate, staleness):
    workers = dist.get_world_size() - 1
    steps, read, waiting, used, stopped = [0] * workers, [0] * workers, set(), [], 0
    push = torch.empty(1 + len(parameters), dtype=torch.float64)
    while stopped < workers:
        worker = dist.recv(push)
        if len(used) < updates and len(used) - read[worker] <= (workers - 1) * (staleness + 1):
            parameters -= learning_rate * push[1:]
            used.append((worker, len(used) - read[worker]))
            steps[worker] += 1
        waiting.add(worker)
        over = len(used) == updates
        for free in sorted(waiting):
            if over or steps[free] <= min(steps) + staleness:
                waiting.remove(free)
                stopped += over
                read[free] = len(used)
                dist.send(with_head(STOP if over else len(used), parameters), free)
    return used
