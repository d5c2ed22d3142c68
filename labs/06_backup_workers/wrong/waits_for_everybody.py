# caught by: updates_from_the_first, updates_in_time, late_workers_are_answered_at_once, everybody_stops
"""The backup workers are waited for as well: as slow as the slowest."""


def serve(parameters, updates, wait_for, learning_rate, serve=serve):
    return serve(parameters, updates, dist.get_world_size() - 1, learning_rate)
