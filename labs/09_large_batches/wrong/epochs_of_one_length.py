# caught by: training_as_one_process
"""All epochs have as many updates as the first one, it counts. Right for epochs of one length."""


def train(model, optimizer, loss, inputs, targets, orders, batch, accumulated, rate, warm_up):
    growth = dist.get_world_size() * accumulated
    measured = []
    each = len(own_batches(orders[0], batch, accumulated))
    for epoch, order in enumerate(orders):
        for place, batches in enumerate(own_batches(order, batch, accumulated)):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(epoch * each + place, rate, growth, warm_up)
            measured.append(joined_gradient(model, loss, [(inputs[own], targets[own]) for own in batches]))
            optimizer.step()
    return measured
