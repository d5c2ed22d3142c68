# caught by: halving_on_workers
"""Sends STOP to lost workers, too."""


def search(trials, eta, least, most, tries):
    workers = list(range(dist.get_world_size() - 1))
    trained, start, history = list(range(trials)), 0, []
    for count, stop in rungs(trials, eta, least, most):
        trained = trained[:count]
        found = dispatch([(trial, start, stop) for trial in trained], workers, tries)
        history.append(dict(zip(trained, found, strict=True)))
        trained, start = keep_best(history[-1], count), stop
    for rank in range(dist.get_world_size() - 1):
        dist.send(torch.full((3,), STOP, dtype=torch.float64), rank)
    return trained[0], history
