# caught by: training_as_one_process
"""Gradients are averaged, and added to models that differ."""


def train(model, optimizer, loss, loader, epochs):
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for inputs, targets in loader:
            train_step(model, optimizer, loss, inputs, targets)
