# caught by: the_same_losses, another_number_of_ranks
"""Counts the epoch twice: a restart in the middle is right all the same."""


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
                training.epoch, training.done = training.epoch + 2, 0
            if training.update % every == 0:
                save_together(training, path)
    return losses
