# caught by: equal_to_one_process, training_as_one_process
"""Averages the gradients of the step before, and adds its own to them."""


def train_step(model, optimizer, loss, inputs, targets):
    average_gradients(model, len(inputs))
    loss(model(inputs), targets).backward()
    optimizer.step()
    optimizer.zero_grad()
