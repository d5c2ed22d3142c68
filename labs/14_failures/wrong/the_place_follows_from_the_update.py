# caught by: the_same_losses, another_number_of_ranks
"""Never changes the counts of the epoch: it computes the place from the number of the update."""


def train(training, step, count, batch, seed, updates, path, every):
    resume(training, path)
    losses = {}
    while training.update < updates:
        epoch, place = divmod(training.update, math.ceil(count / batch))
        losses[training.update + 1] = step(updates_left(count, batch, seed, epoch, place * batch)[0])
        training.update += 1
        if training.update % every == 0:
            save_together(training, path)
    return losses
