"""Lab 08, written differently: a queue of pieces for each step, and sends that are not waited for at once."""

from collections import deque

import torch
import torch.distributed as dist

STOP = -1.0


def may_begin(worker, done, items, staleness):
    complete = [pieces // items for pieces in done]
    return all(complete[worker] - other <= staleness for other in complete)


def whom_to_help(helper, done, left, group, threshold):
    best, least = None, done[helper] - threshold + 1
    for worker, pieces in enumerate(done):
        near = 0 < (helper - worker) % len(done) <= group
        if near and left[worker] > 0 and pieces < least:
            best, least = worker, pieces
    return best


def work(size, gradient):
    server = dist.get_world_size() - 1
    while True:
        order = torch.zeros(3 + size, dtype=torch.float64)
        dist.irecv(order, src=server).wait()
        worker, step, item = order[:3].int().tolist()
        if worker < 0:
            return
        dist.isend(gradient(order[3:], worker, step, item), dst=server).wait()


class Step:
    def __init__(self, number, items, parameters):
        self.number, self.items = number, items
        self.waiting, self.gradients = deque(range(items)), []
        self.parameters = parameters.clone()

    @property
    def complete(self):
        return len(self.gradients) == self.items


def serve(parameters, steps, items, staleness, group, threshold, learning_rate):
    workers = dist.get_world_size() - 1
    current = [Step(-1, 0, parameters) for _ in range(workers)]
    busy = [None] * workers
    handed, sending = [], []

    def send(rank, head, body):
        vector = torch.empty(3 + len(parameters), dtype=torch.float64)
        vector[:3], vector[3:] = torch.tensor(head, dtype=torch.float64), body
        sending.append(dist.isend(vector, rank))

    def begin(rank, worker, item):
        busy[rank] = worker
        step = current[worker]
        send(rank, (worker, step.number, item), step.parameters)
        if rank != worker:
            handed.append((rank, worker, step.number, item))

    def done():
        return [step.number * items + len(step.gradients) if step.number >= 0 else 0 for step in current]

    def decide():
        for rank in [rank for rank in range(workers) if busy[rank] is None]:
            step = current[rank]
            if step.complete and step.number + 1 < steps and may_begin(rank, done(), items, staleness):
                step = current[rank] = Step(step.number + 1, items, parameters)
            if step.waiting:
                begin(rank, rank, step.waiting.popleft())
        for rank in [rank for rank in range(workers) if busy[rank] is None]:
            late = whom_to_help(rank, done(), [len(step.waiting) for step in current], group, threshold)
            if late is not None:
                begin(rank, late, current[late].waiting.pop())

    decide()
    while any(worker is not None for worker in busy):
        report = torch.empty(len(parameters), dtype=torch.float64)
        rank = dist.recv(report)
        step = current[busy[rank]]
        busy[rank] = None
        step.gradients.append(report)
        if step.complete:
            parameters.sub_(sum(step.gradients), alpha=learning_rate)
        decide()
    for rank in range(workers):
        send(rank, (STOP, STOP, STOP), parameters)
    for one in sending:
        one.wait()
    return handed


def shared_step_seconds(items, seconds):
    pieces = items * len(seconds)
    speed = sum(seconds[0] / one for one in seconds)
    return pieces * seconds[0] / speed
