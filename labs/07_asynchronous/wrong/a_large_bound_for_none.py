# caught by: nobody_waits
"""Takes a bound of ten steps for no bound: nobody seems to get so far ahead."""


def serve_asynchronous(parameters, updates, learning_rate):
    return serve_stale_synchronous(parameters, updates, learning_rate, staleness=10)
