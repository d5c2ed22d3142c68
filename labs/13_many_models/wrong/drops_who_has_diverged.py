# caught by: halving_on_workers
"""Trials of nan do not come into the next rung, even if it has room for them."""


def search(trials, eta, least, most, tries):
    workers = list(range(dist.get_world_size() - 1))
    trained, start, history = list(range(trials)), 0, []
    for count, stop in rungs(trials, eta, least, most):
        trained = [trial for trial in trained if not (history and math.isnan(history[-1][trial]))][:count] or trained[
            :1
        ]
        found = dispatch([(trial, start, stop) for trial in trained], workers, tries)
        history.append(dict(zip(trained, found, strict=True)))
        trained, start = keep_best(history[-1], count), stop
    for rank in workers:
        dist.send(torch.full((3,), STOP, dtype=torch.float64), rank)
    return trained[0], history
