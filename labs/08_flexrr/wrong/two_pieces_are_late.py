# caught by: the_worker_that_is_helped, nobody_is_late, pieces_from_the_tail, the_bound_is_kept
"""Has a threshold of its own."""


def whom_to_help(helper, done, left, group, threshold):
    workers = len(done)
    helped = sorted((helper - distance) % workers for distance in range(1, group + 1))
    late = [worker for worker in helped if left[worker] and done[helper] - done[worker] >= 2]
    return min(late, key=lambda worker: done[worker], default=None)
