# caught by: longest_first
"""Of several free workers, takes that of the highest rank."""


def plan(expected, workers):
    free = [(0.0, -worker) for worker in range(workers)]
    planned = [(0, 0.0)] * len(expected)
    for trial in sorted(range(len(expected)), key=lambda trial: -expected[trial]):
        start, worker = heapq.heappop(free)
        planned[trial] = (-worker, start)
        heapq.heappush(free, (start + expected[trial], worker))
    return planned
