# caught by: equal_to_one_process
"""Makes a model train that evaluates: its dropout and batch norm then compute otherwise than in one process."""


def train_step(model, optimizer, loss, inputs, targets):
    model.train()
    optimizer.zero_grad()
    loss(model(inputs), targets).backward()
    average_gradients(model, len(inputs))
    optimizer.step()
