# caught by: the_worker_that_is_helped, pieces_from_the_tail
"""Helps the nearest worker of those that are equally far behind."""


def whom_to_help(helper, done, left, group, threshold):
    workers = len(done)
    helped = [(helper - distance) % workers for distance in range(1, group + 1)]
    late = [worker for worker in helped if left[worker] and done[helper] - done[worker] >= threshold]
    return min(late, key=lambda worker: done[worker], default=None)
