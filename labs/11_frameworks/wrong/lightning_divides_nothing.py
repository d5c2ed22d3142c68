# caught by: framework_trains_as_one_process, every_sample_in_every_epoch, one_exchange_for_each_update
"""No sampler of the framework, and none of its own."""


def train_framework(job: Job) -> list[Epoch]:
    import lightning.pytorch as pl

    class Port(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = job.model
            self.losses: list[Tensor] = []
            self.epochs: list[Epoch] = []

        def training_step(self, pair: list[Tensor]) -> Tensor:
            inputs, labels = pair
            loss = job.loss(self.model(inputs), labels)
            self.losses.append(loss.detach())
            return loss

        def configure_optimizers(self):
            optimizer = job.optimizer(self.parameters(), learning_rate(job))
            return [optimizer], [ExponentialLR(optimizer, job.decay)]

        def on_train_epoch_end(self) -> None:
            training_loss = self.trainer.strategy.reduce(torch.stack(self.losses).mean(), reduce_op="mean").item()
            self.losses.clear()
            self.epochs.append(Epoch(training_loss, *evaluate(self.model, job.test, job.loss, job.batch)))
            if self.trainer.is_global_zero:
                job.save(self.model.state_dict())
            self.trainer.strategy.barrier()

    trainer = pl.Trainer(
        accelerator="cpu", devices=dist.get_world_size(), strategy="ddp", max_epochs=job.epochs,
        accumulate_grad_batches=job.accumulated, use_distributed_sampler=False, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    port = Port()
    trainer.fit(port, DataLoader(job.training, batch_size=job.batch, shuffle=True))
    return port.epochs
