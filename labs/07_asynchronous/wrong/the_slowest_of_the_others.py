# caught by: stale_synchronous_updates
"""With one worker there are no others, and it waits for ever."""


def serve_stale_synchronous(parameters, updates, learning_rate, staleness):
    workers = dist.get_world_size() - 1
    steps, read, waiting, used, stopped = [0] * workers, [0] * workers, set(), [], 0
    push = torch.empty(1 + len(parameters), dtype=torch.float64)
    for version in range(1, updates + 1):
        worker = dist.recv(push)
        parameters -= learning_rate * push[1:]
        used.append((worker, version - 1 - read[worker]))
        steps[worker] += 1
        waiting.add(worker)
        over = version == updates
        for free in sorted(waiting):
            if (
                over
                or steps[free]
                <= min((other for worker, other in enumerate(steps) if worker != free), default=-1) + staleness
            ):
                waiting.remove(free)
                stopped += over
                read[free] = version
                dist.send(with_head(STOP if over else version, parameters), free)
    for _ in range(workers - stopped):
        dist.send(with_head(STOP, parameters), dist.recv(push))
    return used
