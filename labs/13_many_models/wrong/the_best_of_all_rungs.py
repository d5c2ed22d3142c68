# caught by: halving_on_workers
"""Takes the smallest loss of any rung."""


def search(trials, eta, least, most, tries):
    workers = list(range(dist.get_world_size() - 1))
    trained, start, history = list(range(trials)), 0, []
    for count, stop in rungs(trials, eta, least, most):
        trained = trained[:count]
        found = dispatch([(trial, start, stop) for trial in trained], workers, tries)
        history.append(dict(zip(trained, found, strict=True)))
        trained, start = keep_best(history[-1], count), stop
    for rank in workers:
        dist.send(torch.full((3,), STOP, dtype=torch.float64), rank)
    least = {}
    for rung in history:
        for trial, loss in rung.items():
            least[trial] = loss if trial not in least or loss < least[trial] else least[trial]
    return keep_best(least, 1)[0], history
