# caught by: asynchronous_updates, the_staleness_of_each_update, nobody_waits, everybody_stops
"""An asynchronous server that lets nobody be a step ahead: it is synchronous."""


def serve_asynchronous(parameters, updates, learning_rate):
    return serve_stale_synchronous(parameters, updates, learning_rate, staleness=0)
