# caught by: one_push_and_one_answer, everybody_stops
"""Before each gradient a worker says that it has computed, and pushes something that is always too late."""

from distsim.testbed import rank as testbed_rank


def work(parameters, gradient):
    server = dist.get_world_size() - 1
    version, answer = 0, torch.empty(1 + len(parameters), dtype=torch.float64)
    while version != STOP:
        testbed_rank.busy(0.0)
        dist.send(torch.cat([torch.tensor([-5.0], dtype=torch.float64), parameters]), server)
        dist.recv(answer, server)
        if answer[0] != STOP:
            push = torch.cat([torch.tensor([float(version)], dtype=torch.float64), gradient(parameters, version)])
            dist.send(push, server)
            dist.recv(answer, server)
        version = int(answer[0])
        parameters.copy_(answer[1:])
