# caught by: equal_to_one_process, training_as_one_process
"""The mean of equal means is right, and costs another all-reduce in every step."""


def train_step(model, optimizer, loss, inputs, targets):
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    average_gradients(model, len(inputs))
    average_gradients(model, len(inputs))
    optimizer.step()
