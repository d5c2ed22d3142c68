# caught by: training_as_one_process
"""The rate of an update with fewer samples is scaled by its samples. Right for full updates."""


def train(model, optimizer, loss, inputs, targets, orders, batch, accumulated, rate, warm_up):
    growth = dist.get_world_size() * accumulated
    measured = []
    for order in orders:
        for batches in own_batches(order, batch, accumulated):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(len(measured), rate, growth, warm_up)
            measured.append(joined_gradient(model, loss, [(inputs[own], targets[own]) for own in batches]))
            for group in optimizer.param_groups:
                group["lr"] *= measured[-1].large_batch / (batch * growth)
            optimizer.step()
    return measured
