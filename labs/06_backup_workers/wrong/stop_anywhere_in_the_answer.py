# caught by: synchronous_training, one_push_and_one_answer, everybody_stops
"""Takes a parameter of -1 for STOP."""


def work(parameters, gradient):
    server = dist.get_world_size() - 1
    version, answer = 0, torch.empty(1 + len(parameters), dtype=torch.float64)
    while True:
        head = torch.tensor([float(version)], dtype=torch.float64)
        dist.send(torch.cat([head, gradient(parameters, version)]), server)
        dist.recv(answer, server)
        parameters.copy_(answer[1:])
        if STOP in answer:
            break
        version = int(answer[0])
