# caught by: training_as_one_process
"""Chooses the next epoch in the end, and begins to count at 0 there: epoch 0 comes twice."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    for epoch in range(epochs):
        for inputs, targets in loader:
            train_step(model, optimizer, loss, inputs, targets)
        loader.sampler.set_epoch(epoch)
