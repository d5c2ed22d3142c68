# caught by: training_as_one_process
"""Models that are alike are made alike again, at the price of all their bytes."""


def train(model, optimizer, loss, loader, epochs):
    for epoch in range(epochs):
        same_parameters(model)
        loader.sampler.set_epoch(epoch)
        for inputs, targets in loader:
            train_step(model, optimizer, loss, inputs, targets)
