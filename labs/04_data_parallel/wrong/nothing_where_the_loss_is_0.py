# caught by: equal_to_one_process, training_as_one_process
"""Takes a loss of 0 for one without a gradient."""


def train_step(model, optimizer, loss, inputs, targets):
    optimizer.zero_grad()
    value = loss(model(inputs), targets)
    if value.item() != 0:
        value.backward()
    average_gradients(model, len(inputs))
    optimizer.step()
