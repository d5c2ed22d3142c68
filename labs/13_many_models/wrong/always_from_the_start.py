# caught by: every_trial_once, no_trial_is_lost, halving_on_workers
"""Trains from epoch 0."""


def work(base_seed, train):
    scheduler = dist.get_world_size() - 1
    order = torch.empty(3, dtype=torch.float64)
    while True:
        dist.recv(order, scheduler)
        trial, _, stop = (int(number) for number in order)
        if trial == STOP:
            return
        try:
            loss = train(trial, seed_of(base_seed, trial), 0, stop)
        except WorkerLostError:
            dist.send(torch.tensor([LOST, math.nan], dtype=torch.float64), scheduler)
            return
        dist.send(torch.tensor([DONE, loss], dtype=torch.float64), scheduler)
