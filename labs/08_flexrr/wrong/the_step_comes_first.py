# caught by: every_piece_once
"""Orders have the step before the worker, and only its own workers read them so."""


def work(size, gradient):
    server = dist.get_world_size() - 1
    order = torch.empty(3 + size, dtype=torch.float64)
    dist.recv(order, server)
    while order[0] != STOP:
        dist.send(gradient(order[3:], int(order[1]), int(order[0]), int(order[2])), server)
        dist.recv(order, server)


def serve(parameters, steps, items, staleness, group, threshold, learning_rate):
    workers = dist.get_world_size() - 1
    done, begun = [0] * workers, [0] * workers  # pieces since the start; steps
    front, left = [0] * workers, [0] * workers  # of the step under way
    start, total = [parameters.clone()] * workers, [torch.zeros_like(parameters)] * workers
    doing: dict[int, int] = {}  # by rank: whose piece it does
    handed = []

    def order(rank: int, worker: int, item: int) -> tuple[int, int, int, int]:
        doing[rank] = worker
        left[worker] -= 1
        piece = (worker, begun[worker] - 1, item)
        dist.send(torch.cat([torch.tensor((piece[1], piece[0], piece[2]), dtype=torch.float64), start[worker]]), rank)
        return rank, *piece

    def decide() -> None:
        for rank in range(workers):
            complete = done[rank] == begun[rank] * items
            if complete and begun[rank] < steps and rank not in doing and may_begin(rank, done, items, staleness):
                begun[rank] += 1
                front[rank], left[rank] = 0, items
                start[rank], total[rank] = parameters.clone(), torch.zeros_like(parameters)
            if left[rank] and rank not in doing:
                order(rank, rank, front[rank])
                front[rank] += 1
        for rank in range(workers):
            if rank not in doing:
                worker = whom_to_help(rank, done, left, group, threshold)
                if worker is not None:
                    handed.append(order(rank, worker, front[worker] + left[worker] - 1))

    report = torch.empty(len(parameters), dtype=torch.float64)
    decide()
    while doing:
        worker = doing.pop(dist.recv(report))
        total[worker] += report
        done[worker] += 1
        if done[worker] == begun[worker] * items:
            parameters -= learning_rate * total[worker]
        decide()
    for rank in range(workers):
        dist.send(torch.cat([torch.full((3,), STOP, dtype=torch.float64), parameters]), rank)
    return handed
