# caught by: one_start, training_as_one_process
"""Buffers that are not persistent stand in no state_dict, and yet the model computes with them."""


def same_parameters(model):
    state = [model.state_dict() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(state, src=0)
    model.load_state_dict(state[0])
