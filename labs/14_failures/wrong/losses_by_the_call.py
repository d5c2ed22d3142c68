# caught by: the_same_losses, another_number_of_ranks
"""Numbers the losses from 1 in each call. Right without a failure."""


def train(training, step, count, batch, seed, updates, path, every):
    resume(training, path)
    losses = {}
    while training.update < updates:
        left = updates_left(count, batch, seed, training.epoch, training.done)
        for own in left[: updates - training.update]:
            loss = step(own)
            training.update += 1
            training.done = min(training.done + batch, count)
            losses[len(losses) + 1] = loss
            if training.done == count:
                training.epoch, training.done = training.epoch + 1, 0
            if training.update % every == 0:
                save_together(training, path)
    return losses
