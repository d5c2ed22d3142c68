# caught by: training_as_one_process
"""A batch that is smaller than the others is left out."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for inputs, targets in loader:
            if len(inputs) == loader.batch_size:
                train_step(model, optimizer, loss, inputs, targets)
