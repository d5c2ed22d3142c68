# caught by: equal_to_one_process, training_as_one_process
"""backward adds to what is there: from the second step on, every gradient is one too many."""


def train_step(model, optimizer, loss, inputs, targets):
    loss(model(inputs), targets).backward()
    average_gradients(model, len(inputs))
    optimizer.step()
