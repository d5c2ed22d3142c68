"""Lab 11: one training script, ported to DistributedDataParallel and to a framework.

`train` in script.py trains in one process. Port it twice: once with DistributedDataParallel alone, and once with
Lightning or with Accelerate, as you like. torchrun has started N processes, and `init_process_group` has been called in
each of them, before your functions are called. Every process has a Job with the same data and numbers. But each model
has parameters of its own, as if drawn without a seed; those of rank 0 count. All computing is on the CPU.

A port trains as the script does, with batches of N x batch samples, of which each process computes its part:

* Epochs. In each epoch the ranks together take each training sample at least once, in an order that is drawn anew for
  each epoch. Each rank has as many samples as the others. Together they take fewer than N x batch samples more than
  there are: the first ones of the order may be taken twice, to fill up the last batches.
* Updates. After each update, all ranks have the same parameters. They are those of one process that starts as rank 0
  does and takes the joined batches. Each rank's batches of an epoch are a multiple of `accumulated`: you need no rule
  for an update that is cut short. Each batch of an update counts alike. The ranks exchange gradients once for each
  update, not for each batch.
* Learning rate. In epoch number e, counted from 0, it is learning_rate(job) x decay^e.
* Results. Every rank returns an Epoch for each epoch, and all ranks return the same numbers. The training loss is the
  mean over the batches of all ranks. The test loss and the accuracy come from `evaluate`, after the last update.
* Files. After each epoch's last update, rank 0 calls `job.save` once, with the state_dict of `job.model`; its names are
  those of `job.model`. No other rank calls it, and no other file is left. `job.save` takes some time, a second or
  twenty minutes. No rank returns before the last file is written.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from script import Epoch, Job
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset


def learning_rate(job: Job) -> float:
    """Returns the learning rate for an update of all ranks, by linear scaling.

    job.rate suits an update of job.rate_samples samples. Here an update has the samples of `accumulated` batches of
    each of the N ranks. If it has m times as many samples, the rate is m times as large; m may be below 1. Only N and
    the numbers of the Job are needed, and nothing goes over the network.
    """
    # write
    samples = dist.get_world_size() * job.accumulated * job.batch
    return job.rate * samples / job.rate_samples
    # end


@torch.no_grad()
def evaluate(
    model: nn.Module, data: Dataset[tuple[Tensor, Tensor]], loss: Callable[[Tensor, Tensor], Tensor], batch: int
) -> tuple[float, float]:
    """Returns the mean loss and the share of right classes over all samples of `data`, the same on every rank.

    Each sample counts once, whatever the number of ranks and of samples (at least 1). The ranks share the work: no rank
    computes with more than ceil(samples / N) samples, and no sample is computed twice. A rank may have no sample. The
    model gets batches of at most `batch` samples. It computes as in evaluation (`model.eval()`). Afterwards it trains
    if it did before, and evaluates otherwise. At most 64 bytes of numbers are exchanged in one collective.
    """
    # write
    own = Subset(data, range(dist.get_rank(), len(data), dist.get_world_size()))
    trains = model.training
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64)
    for inputs, labels in DataLoader(own, batch_size=batch) if len(own) else ():
        outputs = model(inputs)
        sums[0] += loss(outputs, labels) * len(labels)
        sums[1] += (outputs.argmax(dim=1) == labels).sum()
        sums[2] += len(labels)
    model.train(trains)
    dist.all_reduce(sums)
    return (sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()
    # end


def train_ddp(job: Job) -> list[Epoch]:
    """Ports the script to DistributedDataParallel, without a framework. The first text of this file has the rules."""
    # write
    shares = DistributedSampler(job.training)
    loader = DataLoader(job.training, batch_size=job.batch, sampler=shares)
    model = DistributedDataParallel(job.model)
    optimizer = job.optimizer(model.parameters(), learning_rate(job))
    schedule = ExponentialLR(optimizer, job.decay)
    epochs = []
    for epoch in range(job.epochs):
        shares.set_epoch(epoch)
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
    # end


def train_framework(job: Job) -> list[Epoch]:
    """Ports the script to Lightning or to Accelerate. The first text of this file has the rules.

    Lightning's Trainer or Fabric, or the accelerator of Accelerate, makes the backward of every batch. Import the
    framework inside of this function: then the other functions work without it.
    """
    # write
    import lightning.pytorch as pl

    losses: list[Tensor] = []
    epochs: list[Epoch] = []

    class Port(pl.LightningModule):
        def training_step(self, pair: list[Tensor]) -> Tensor:
            inputs, labels = pair
            loss = job.loss(self.model(inputs), labels)
            losses.append(loss.detach())
            return loss

        def configure_optimizers(self):
            optimizer = job.optimizer(self.parameters(), learning_rate(job))
            return [optimizer], [ExponentialLR(optimizer, job.decay)]

        def on_train_epoch_end(self) -> None:
            training_loss = self.trainer.strategy.reduce(torch.stack(losses).mean(), reduce_op="mean").item()
            losses.clear()
            epochs.append(Epoch(training_loss, *evaluate(self.model, job.test, job.loss, job.batch)))
            if self.trainer.is_global_zero:
                job.save(self.model.state_dict())
            self.trainer.strategy.barrier()

    trainer = pl.Trainer(
        accelerator="cpu", devices=dist.get_world_size(), strategy="ddp", max_epochs=job.epochs,
        accumulate_grad_batches=job.accumulated, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    port = Port()
    port.model = job.model
    trainer.fit(port, DataLoader(job.training, batch_size=job.batch, shuffle=True))
    return epochs
    # end
