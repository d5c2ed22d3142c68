# caught by: mean_gradients, frozen_and_tied, bytes_of_one_all_reduce, equal_to_one_process, training_as_one_process
"""Nothing is exchanged: as many models as ranks."""


def average_gradients(model, samples):
    pass
