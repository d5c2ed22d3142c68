# caught by: snapshot_of_everything
"""The optimizer takes the state's own tensors, and changes them: a second restore is wrong."""


def restore(training, state):
    training.model.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    training.schedule.load_state_dict(state["schedule"])
    training.update, training.epoch, training.done = state["counts"]
    torch.set_rng_state(state["generators"]["torch"])
    np.random.set_state(state["generators"]["numpy"])
    random.setstate(state["generators"]["python"])
