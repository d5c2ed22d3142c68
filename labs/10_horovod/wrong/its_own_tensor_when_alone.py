# caught by: mean_and_sum
"""With one process, the result is the argument: whoever changes one changes the other."""

Given = allreduce


def allreduce(tensor, name=None, op=Average):
    return tensor if size() == 1 else Given(tensor, name, op)
