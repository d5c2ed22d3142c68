# caught by: the_same_losses, another_number_of_ranks
"""Looks for a checkpoint once in the life of a process."""

_seen = []


def train(training, step, count, batch, seed, updates, path, every):
    if not _seen:
        _seen.append(resume(training, path))
    losses = {}
    while training.update < updates:
        left = updates_left(count, batch, seed, training.epoch, training.done)
        for own in left[: updates - training.update]:
            loss = step(own)
            training.update += 1
            training.done = min(training.done + batch, count)
            losses[training.update] = loss
            if training.done == count:
                training.epoch, training.done = training.epoch + 1, 0
            if training.update % every == 0:
                save_together(training, path)
    return losses
