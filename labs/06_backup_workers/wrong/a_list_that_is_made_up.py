# caught by: updates_from_the_first
"""Says who should have come."""


def serve(parameters, updates, wait_for, learning_rate, serve=serve):
    serve(parameters, updates, wait_for, learning_rate)
    return [list(range(wait_for)) for _ in range(updates)]
