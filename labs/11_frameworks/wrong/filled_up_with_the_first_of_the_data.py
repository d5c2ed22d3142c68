# caught by: every_sample_in_every_epoch
"""Every epoch takes the first samples of the data twice, not those of its order."""


def train_ddp(job: Job) -> list[Epoch]:
    count, world = len(job.training), dist.get_world_size()
    model = DistributedDataParallel(job.model)
    optimizer = job.optimizer(model.parameters(), learning_rate(job))
    schedule = ExponentialLR(optimizer, job.decay)
    epochs = []
    for epoch in range(job.epochs):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch)).tolist()
        order += range(-count % world)
        loader = DataLoader(Subset(job.training, order[dist.get_rank() :: world]), batch_size=job.batch)
        losses = []
        for number, (inputs, labels) in enumerate(loader, start=1):
            last = number % job.accumulated == 0
            model.require_backward_grad_sync = last
            loss = job.loss(model(inputs), labels)
            (loss / job.accumulated).backward()
            losses.append(loss.detach())
            if last:
                optimizer.step()
                optimizer.zero_grad()
        schedule.step()
        total = torch.stack(losses).mean()
        dist.all_reduce(total)
        training_loss = total.item() / dist.get_world_size()
        epochs.append(Epoch(training_loss, *evaluate(job.model, job.test, job.loss, job.batch)))
        if dist.get_rank() == 0:
            job.save(job.model.state_dict())
    dist.barrier()
    return epochs
