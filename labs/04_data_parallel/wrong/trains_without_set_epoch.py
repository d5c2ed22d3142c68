# caught by: training_as_one_process
"""The sampler can shuffle, and nobody asks it to."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    for _ in range(epochs):
        for inputs, targets in loader:
            train_step(model, optimizer, loss, inputs, targets)
