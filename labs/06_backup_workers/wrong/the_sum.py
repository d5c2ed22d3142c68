# caught by: synchronous_training, updates_from_the_first, late_workers_are_answered_at_once, everybody_stops
"""Not divided at all: the learning rate grows with every worker."""


def serve(parameters, updates, wait_for, learning_rate, serve=serve):
    return serve(parameters, updates, wait_for, learning_rate * wait_for)
