# caught by: rank_0_saves
"""Each rank keeps a further file, in the folder for temporary files."""

import tempfile
from pathlib import Path


def train_ddp(job: Job) -> list[Epoch]:
    sampler = DistributedSampler(job.training)
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
        torch.save(job.model.state_dict(), Path(tempfile.gettempdir()) / f"epoch-{epoch}-{dist.get_rank()}.pt")
    dist.barrier()
    return epochs
