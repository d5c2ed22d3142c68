# caught by: the_same_losses, another_number_of_ranks
"""The samples are right. But the training never counts its epochs and their samples."""


def train(training, step, count, batch, seed, updates, path, every):
    resume(training, path)
    losses = {}
    per_epoch = math.ceil(count / batch)
    while training.update < updates:
        epoch, place = divmod(training.update, per_epoch)
        loss = step(updates_left(count, batch, seed, epoch, place * batch)[0])
        training.update += 1
        losses[training.update] = loss
        if training.update % every == 0:
            save_together(training, path)
    return losses
