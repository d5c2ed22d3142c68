# caught by: training_as_one_process
"""Leaves out batches of one sample."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for inputs, targets in loader:
            if len(inputs) > 1:
                train_step(model, optimizer, loss, inputs, targets)
