# caught by: longest_first
"""Returns the trials as they are taken."""


def plan(expected, workers):
    free = [(0.0, worker) for worker in range(workers)]
    planned = [(0, 0.0)] * len(expected)
    for place, trial in enumerate(sorted(range(len(expected)), key=lambda trial: -expected[trial])):
        start, worker = heapq.heappop(free)
        planned[place] = (worker, start)
        heapq.heappush(free, (start + expected[trial], worker))
    return planned
