# caught by: equal_to_one_process, training_as_one_process
"""Half of the steps are without the others."""


def train_step(model, optimizer, loss, inputs, targets):
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    train_step.count = getattr(train_step, "count", 0) + 1
    if train_step.count % 2:
        average_gradients(model, len(inputs))
    optimizer.step()
