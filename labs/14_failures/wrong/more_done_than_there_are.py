# caught by: the_same_losses, another_number_of_ranks
"""The last update of an epoch has fewer samples than the others, and counts as many."""


def train(training, step, count, batch, seed, updates, path, every):
    resume(training, path)
    losses = {}
    while training.update < updates:
        if training.done >= count:
            training.epoch, training.done = training.epoch + 1, 0
        loss = step(updates_left(count, batch, seed, training.epoch, training.done)[0])
        training.update += 1
        training.done += batch
        losses[training.update] = loss
        if training.update % every == 0:
            save_together(training, path)
    return losses
