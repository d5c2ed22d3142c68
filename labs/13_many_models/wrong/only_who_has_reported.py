# caught by: no_trial_is_lost
"""Orders only from the worker that has reported; others that are idle are forgotten."""


def dispatch(jobs, workers, tries):
    losses = [math.nan] * len(jobs)
    ordered = [0] * len(jobs)
    waiting = list(range(len(jobs)))
    doing: dict[int, int] = {}  # by rank: the place of its job
    report = torch.empty(2, dtype=torch.float64)
    asked = list(workers)
    while True:
        for rank in asked:
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
            asked = [rank]
        else:
            workers.remove(rank)
            asked = [] if doing else workers
            if ordered[place] < tries:
                bisect.insort(waiting, place)
