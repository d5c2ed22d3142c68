# caught by: halving_on_workers
"""A worker that was lost in one search is lost for all later ones."""

known = []


def search(trials, eta, least, most, tries):
    known.extend(() if known else range(dist.get_world_size() - 1))
    workers = known
    trained, start, history = list(range(trials)), 0, []
    for count, stop in rungs(trials, eta, least, most):
        trained = trained[:count]
        found = dispatch([(trial, start, stop) for trial in trained], workers, tries)
        history.append(dict(zip(trained, found, strict=True)))
        trained, start = keep_best(history[-1], count), stop
    for rank in workers:
        dist.send(torch.full((3,), STOP, dtype=torch.float64), rank)
    return trained[0], history
