# caught by: equal_to_one_process, training_as_one_process
"""Each rank steps on its own, then parameters are averaged: right under SGD, with momentum too, not under Adam."""


def train_step(model, optimizer, loss, inputs, targets):
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    total = torch.tensor(float(len(inputs)), dtype=torch.float64)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data *= len(inputs) / float(total)
            dist.all_reduce(parameter.data)
