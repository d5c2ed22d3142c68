# caught by: the_same_losses, another_number_of_ranks
"""Forgets the number of the epoch: every epoch has the order of epoch 0."""


def train(training, step, count, batch, seed, updates, path, every):
    resume(training, path)
    losses = {}
    while training.update < updates:
        left = updates_left(count, batch, seed, training.epoch, training.done)
        for own in left[: updates - training.update]:
            loss = step(own)
            training.update += 1
            training.done = min(training.done + batch, count)
            losses[training.update] = loss
            if training.done == count:
                training.done = 0
            if training.update % every == 0:
                save_together(training, path)
    return losses
