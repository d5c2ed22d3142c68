# caught by: longest_first
"""Gives the next trial to the worker with the fewest trials."""


def plan(expected, workers):
    free = [(0, worker, 0.0) for worker in range(workers)]
    planned = [(0, 0.0)] * len(expected)
    for trial in sorted(range(len(expected)), key=lambda trial: -expected[trial]):
        count, worker, start = heapq.heappop(free)
        planned[trial] = (worker, start)
        heapq.heappush(free, (count + 1, worker, start + expected[trial]))
    return planned
