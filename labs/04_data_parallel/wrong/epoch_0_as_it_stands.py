# caught by: training_as_one_process
"""Takes for granted that the sampler stands at epoch 0."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    for epoch in range(epochs):
        if epoch:
            loader.sampler.set_epoch(epoch)
        for inputs, targets in loader:
            train_step(model, optimizer, loss, inputs, targets)
