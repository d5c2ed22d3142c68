# caught by: longest_first
"""Of equal trials, takes the one with the highest number."""


def plan(expected, workers):
    free = [(0.0, worker) for worker in range(workers)]
    planned = [(0, 0.0)] * len(expected)
    for trial in sorted(range(len(expected)), key=lambda trial: (expected[trial], trial), reverse=True):
        start, worker = heapq.heappop(free)
        planned[trial] = (worker, start)
        heapq.heappush(free, (start + expected[trial], worker))
    return planned
