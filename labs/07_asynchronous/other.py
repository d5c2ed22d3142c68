"""Lab 07, written differently: the two servers share nothing, and answers are not waited for."""

import torch
import torch.distributed as dist

STOP = -1.0


def message(head, body):
    return torch.cat((torch.full((1,), float(head), dtype=torch.float64), body))


def work(parameters, gradient):
    server = dist.get_world_size() - 1
    done, push = False, 0
    while not done:
        answer = message(0, parameters)
        waiting = dist.irecv(answer, server)
        dist.send(message(push, gradient(parameters, push)), server)
        waiting.wait()
        parameters[:] = answer[1:]
        done = answer[0].item() == STOP
        push += 1


def serve_asynchronous(parameters, updates, learning_rate):
    workers = dist.get_world_size() - 1
    seen, history, sending = {}, [], []
    while len(history) < updates:
        push = message(0, parameters)
        worker = dist.recv(push)
        parameters.sub_(push[1:], alpha=learning_rate)
        history.append((worker, len(history) - seen.get(worker, 0)))
        seen[worker] = len(history)
        head = STOP if len(history) == updates else len(history)
        sending.append(dist.isend(message(head, parameters), worker))
    for _ in range(workers - 1):
        worker = dist.recv(message(0, parameters))
        sending.append(dist.isend(message(STOP, parameters), worker))
    for one in sending:
        one.wait()
    return history


def serve_stale_synchronous(parameters, updates, learning_rate, staleness):
    workers = range(dist.get_world_size() - 1)
    clock, seen = dict.fromkeys(workers, 0), dict.fromkeys(workers, 0)
    held, history = set(), []

    def answer(worker, head):
        seen[worker] = len(history)
        dist.send(message(head, parameters), worker)

    while len(history) < updates:
        push = message(0, parameters)
        worker = dist.recv(push)
        parameters.sub_(push[1:], alpha=learning_rate)
        history.append((worker, len(history) - seen[worker]))
        clock[worker] += 1
        held.add(worker)
        over = len(history) == updates
        free = [one for one in sorted(held) if over or clock[one] - min(clock.values()) <= staleness]
        for one in free:
            answer(one, STOP if over else len(history))
        held.difference_update(free)
    computing = set(workers).difference(free)
    while computing:
        worker = dist.recv(message(0, parameters))
        computing.discard(worker)
        answer(worker, STOP)
    return history


def largest_staleness(workers, staleness):
    others, behind, ahead = workers - 1, staleness, staleness + 1
    return others * behind + others * ahead
