# caught by: training_as_one_process
"""Updates count from 0 in each epoch. Right in the first one."""


def train(model, optimizer, loss, inputs, targets, orders, batch, accumulated, rate, warm_up):
    growth = dist.get_world_size() * accumulated
    measured = []
    for order in orders:
        for number, batches in enumerate(own_batches(order, batch, accumulated)):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(number, rate, growth, warm_up)
            measured.append(joined_gradient(model, loss, [(inputs[own], targets[own]) for own in batches]))
            optimizer.step()
    return measured
