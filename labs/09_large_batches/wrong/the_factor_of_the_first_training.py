# caught by: training_as_one_process
"""Counts ranks and batches once. Right as long as every training of the process accumulates as many batches."""

_growth = []


def train(model, optimizer, loss, inputs, targets, orders, batch, accumulated, rate, warm_up):
    if not _growth:
        _growth.append(dist.get_world_size() * accumulated)
    measured = []
    for order in orders:
        for batches in own_batches(order, batch, accumulated):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(len(measured), rate, _growth[0], warm_up)
            measured.append(joined_gradient(model, loss, [(inputs[own], targets[own]) for own in batches]))
            optimizer.step()
    return measured
