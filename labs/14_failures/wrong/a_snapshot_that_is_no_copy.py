# caught by: snapshot_of_everything
"""The state changes while the training goes on. Saved at once, it is right."""


def snapshot(training):
    return {
        "model": training.model.state_dict(),
        "optimizer": training.optimizer.state_dict(),
        "schedule": training.schedule.state_dict(),
        "counts": (training.update, training.epoch, training.done),
        "generators": {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()},
    }
