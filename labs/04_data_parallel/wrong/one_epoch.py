# caught by: training_as_one_process
"""Stops after the first."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    loader.sampler.set_epoch(0)
    for inputs, targets in loader:
        train_step(model, optimizer, loss, inputs, targets)
