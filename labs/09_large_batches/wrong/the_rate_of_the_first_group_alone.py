# caught by: training_as_one_process
"""The other groups keep their rates. Right for one group."""


def train(model, optimizer, loss, inputs, targets, orders, batch, accumulated, rate, warm_up):
    growth = dist.get_world_size() * accumulated
    measured = []
    for order in orders:
        for batches in own_batches(order, batch, accumulated):
            for group in optimizer.param_groups[:1]:
                group["lr"] = learning_rate(len(measured), rate, growth, warm_up)
            measured.append(joined_gradient(model, loss, [(inputs[own], targets[own]) for own in batches]))
            optimizer.step()
    return measured
