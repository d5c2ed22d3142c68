# caught by: training_as_one_process
"""Every rank computes the joined batch by itself: all are equal, and nothing is faster."""


def train(model, optimizer, loss, loader, epochs):
    same_parameters(model)
    inputs, targets = loader.dataset[:]
    size = loader.batch_size * dist.get_world_size()
    for _ in range(epochs):
        for first in range(0, len(inputs), size):
            optimizer.zero_grad()
            loss(model(inputs[first : first + size]), targets[first : first + size]).backward()
            optimizer.step()
