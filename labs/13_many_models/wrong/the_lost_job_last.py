# caught by: no_trial_is_lost, halving_on_workers
"""A lost job waits behind all others."""


def dispatch(jobs, workers, tries):
    losses = [math.nan] * len(jobs)
    ordered = [0] * len(jobs)
    waiting = list(range(len(jobs)))
    doing: dict[int, int] = {}  # by rank: the place of its job
    report = torch.empty(2, dtype=torch.float64)
    while True:
        for rank in workers:
            if waiting and rank not in doing:
                place = doing[rank] = waiting.pop(0)
                ordered[place] += 1
                dist.send(torch.tensor(jobs[place], dtype=torch.float64), rank)
        if not doing:
            return losses
        rank = dist.recv(report)
        place = doing.pop(rank)
        if report[0] == DONE:
            losses[place] = float(report[1])
        else:
            workers.remove(rank)
            if ordered[place] < tries:
                waiting.append(place)
