# caught by: equal_to_one_process, training_as_one_process
"""Weighs by the size of the batch twice: once in the loss, and once in the mean."""


def train_step(model, optimizer, loss, inputs, targets):
    optimizer.zero_grad()
    (loss(model(inputs), targets) * len(inputs)).backward()
    average_gradients(model, len(inputs))
    optimizer.step()
