# caught by: training_as_one_process
"""Each rank goes through the samples of all: the mean is right, and nothing is faster."""


def train(model, optimizer, loss, inputs, targets, orders, batch, accumulated, rate, warm_up):
    growth = dist.get_world_size() * accumulated
    joined = batch * growth
    measured = []
    for order in orders:
        for first in range(0, len(order), joined):
            own = order[first : first + joined]
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(len(measured), rate, growth, warm_up)
            found = joined_gradient(model, loss, [(inputs[own], targets[own])])
            measured.append(found._replace(large_batch=len(own)))
            optimizer.step()
    return measured
