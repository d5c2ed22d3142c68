# caught by: equal_to_one_process
"""Forgets only the trained parameters' gradients: the optimizer moves the frozen ones by theirs."""


def train_step(model, optimizer, loss, inputs, targets):
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = None
    loss(model(inputs), targets).backward()
    average_gradients(model, len(inputs))
    optimizer.step()
