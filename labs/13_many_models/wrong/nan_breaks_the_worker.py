# caught by: every_trial_once, no_trial_is_lost, halving_on_workers
"""A worker whose training diverges breaks down."""


def work(base_seed, train):
    scheduler = dist.get_world_size() - 1
    order = torch.empty(3, dtype=torch.float64)
    while True:
        dist.recv(order, scheduler)
        trial, start, stop = (int(number) for number in order)
        if trial == STOP:
            return
        try:
            loss = train(trial, seed_of(base_seed, trial), start, stop)
        except WorkerLostError:
            dist.send(torch.tensor([LOST, math.nan], dtype=torch.float64), scheduler)
            return
        if math.isnan(loss):
            dist.send(torch.tensor([LOST, loss], dtype=torch.float64), scheduler)
            return
        dist.send(torch.tensor([DONE, loss], dtype=torch.float64), scheduler)
