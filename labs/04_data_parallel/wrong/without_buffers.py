# caught by: one_start, training_as_one_process
"""Parameters are alike, and what the model keeps beside them is not."""


def same_parameters(model):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
