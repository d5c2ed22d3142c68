# caught by: no_trial_is_lost
"""A lost job goes to the worker that was idle first, not to the one with the lowest rank."""


def dispatch(jobs, workers, tries):
    losses = [math.nan] * len(jobs)
    ordered = [0] * len(jobs)
    waiting = list(range(len(jobs)))
    doing = {}
    idle = list(workers)
    report = torch.empty(2, dtype=torch.float64)
    while True:
        while waiting and idle:
            rank, place = idle.pop(0), waiting.pop(0)
            doing[rank] = place
            ordered[place] += 1
            dist.send(torch.tensor(jobs[place], dtype=torch.float64), rank)
        if not doing:
            return losses
        rank = dist.recv(report)
        place = doing.pop(rank)
        if report[0] == DONE:
            losses[place] = float(report[1])
            idle.append(rank)
        else:
            workers.remove(rank)
            if ordered[place] < tries:
                bisect.insort(waiting, place)
