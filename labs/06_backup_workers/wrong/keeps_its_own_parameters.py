# caught by: synchronous_training, one_push_and_one_answer, everybody_stops
"""The worker does not take what the server answers."""


def work(parameters, gradient):
    server = dist.get_world_size() - 1
    version, answer = 0, torch.empty(1 + len(parameters), dtype=torch.float64)
    while version != STOP:
        push = torch.cat([torch.tensor([float(version)], dtype=torch.float64), gradient(parameters, version)])
        dist.send(push, server)
        dist.recv(answer, server)
        version = int(answer[0])
