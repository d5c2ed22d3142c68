# caught by: updates_from_the_first, late_workers_are_answered_at_once, everybody_stops
"""The mean of four, where three have come."""


def serve(parameters, updates, wait_for, learning_rate, serve=serve):
    return serve(parameters, updates, wait_for, learning_rate * wait_for / (dist.get_world_size() - 1))
