# caught by: framework_trains_as_one_process, every_sample_in_every_epoch, rank_0_saves, one_exchange_for_each_update
"""All ranks take all samples."""


def train_framework(job):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=job.accumulated)
    model, optimizer, _ = accelerator.prepare(
        job.model,
        job.optimizer(job.model.parameters(), learning_rate(job)),
        DataLoader(job.training, batch_size=job.batch, shuffle=True),
    )
    loader = DataLoader(job.training, batch_size=job.batch, shuffle=True)
    rows = []
    for _ in range(job.epochs):
        losses = []
        for inputs, classes in loader:
            with accelerator.accumulate(model):
                loss = job.loss(model(inputs), classes)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
        for group in optimizer.param_groups:
            group["lr"] *= job.decay
        mean = accelerator.reduce(torch.stack(losses).mean(), "mean").item()
        plain = accelerator.unwrap_model(model)
        rows.append(Epoch(mean, *evaluate(plain, job.test, job.loss, job.batch)))
        if accelerator.is_main_process:
            job.save(plain.state_dict())
        accelerator.wait_for_everyone()
    return rows
