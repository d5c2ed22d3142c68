# caught by: longest_first
"""Takes the trials in their own order."""


def plan(expected, workers):
    free = [(0.0, worker) for worker in range(workers)]
    planned = [(0, 0.0)] * len(expected)
    for trial in range(len(expected)):
        start, worker = heapq.heappop(free)
        planned[trial] = (worker, start)
        heapq.heappush(free, (start + expected[trial], worker))
    return planned
