# caught by: the_worker_that_is_helped, every_piece_once, pieces_from_the_tail, the_bound_is_kept, time_to_finish
"""Worker 0 does not come after the last one."""


def whom_to_help(helper, done, left, group, threshold):
    helped = sorted(helper - distance for distance in range(1, group + 1) if helper >= distance)
    late = [worker for worker in helped if left[worker] and done[helper] - done[worker] >= threshold]
    return min(late, key=lambda worker: done[worker], default=None)
