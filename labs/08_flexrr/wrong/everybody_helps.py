# caught by: the_worker_that_is_helped, pieces_from_the_tail, the_bound_is_kept
"""Groups do not count."""


def whom_to_help(helper, done, left, group, threshold):
    workers = len(done)
    helped = sorted((helper - distance) % workers for distance in range(1, workers))
    late = [worker for worker in helped if left[worker] and done[helper] - done[worker] >= threshold]
    return min(late, key=lambda worker: done[worker], default=None)
