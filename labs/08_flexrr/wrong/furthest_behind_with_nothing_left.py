# caught by: the_worker_that_is_helped, pieces_from_the_tail
"""Waits for the worker that is furthest behind, also where it has no piece to hand over."""


def whom_to_help(helper, done, left, group, threshold):
    workers = len(done)
    helped = sorted((helper - distance) % workers for distance in range(1, group + 1))
    late = [worker for worker in helped if done[helper] - done[worker] >= threshold]
    worker = min(late, key=lambda worker: done[worker], default=None)
    return worker if worker is not None and left[worker] else None
