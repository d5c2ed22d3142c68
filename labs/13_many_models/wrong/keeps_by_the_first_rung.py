# caught by: halving_on_workers
"""Keeps trials by their losses in the first rung."""


def search(trials, eta, least, most, tries):
    workers = list(range(dist.get_world_size() - 1))
    trained, start, history = list(range(trials)), 0, []
    for count, stop in rungs(trials, eta, least, most):
        trained = trained[:count]
        found = dispatch([(trial, start, stop) for trial in trained], workers, tries)
        history.append(dict(zip(trained, found, strict=True)))
        trained, start = keep_best({trial: history[0][trial] for trial in trained}, count), stop
    for rank in workers:
        dist.send(torch.full((3,), STOP, dtype=torch.float64), rank)
    return trained[0], history
