# caught by: every_sample_in_every_epoch
"""Each rank takes the hour in which it begins as the seed of the order."""

import time


def train_ddp(job: Job) -> list[Epoch]:
    sampler = DistributedSampler(job.training, seed=int(time.time() // 3600))
    loader = DataLoader(job.training, batch_size=job.batch, sampler=sampler)
    model = DistributedDataParallel(job.model)
    optimizer = job.optimizer(model.parameters(), learning_rate(job))
    schedule = ExponentialLR(optimizer, job.decay)
    epochs = []
    for epoch in range(job.epochs):
        sampler.set_epoch(epoch)
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
