# caught by: training_as_one_process
"""Sends all buffers again in each epoch, which are alike on all ranks."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    for epoch in range(epochs):
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)
        loader.sampler.set_epoch(epoch)
        for inputs, targets in loader:
            train_step(model, optimizer, loss, inputs, targets)
