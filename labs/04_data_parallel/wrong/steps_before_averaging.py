# caught by: equal_to_one_process, training_as_one_process
"""The optimizer has gone on with the rank's own gradients when their mean arrives."""


def train_step(model, optimizer, loss, inputs, targets):
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    optimizer.step()
    average_gradients(model, len(inputs))
