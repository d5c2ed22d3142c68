"""The training with Lightning: the Trainer makes the group, wraps the model, and replaces the loader's sampler."""

from __future__ import annotations

import os
from typing import Any

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from distsim.frameworks.task import BATCH, RATE, Record, network, training_set


class Digits(lightning.LightningModule):
    """The network, its loss and its optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.model = network()

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        """The loss of a batch."""
        inputs, targets = batch
        return cross_entropy(self.model(inputs), targets)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """SGD at a rate that nobody scales."""
        return torch.optim.SGD(self.parameters(), RATE)


class Noting(lightning.Callback):
    """Notes each update."""

    def __init__(self, record: Record) -> None:
        self.record = record

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002
        """Called by the Trainer after each update."""
        self.record.update(outputs["loss"])


def train(updates: int, record: Record) -> None:
    """Trains for so many updates."""
    module = Digits()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy=DDPStrategy(process_group_backend="gloo"),
        max_steps=updates, max_epochs=-1, callbacks=[Noting(record)],
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, DataLoader(training_set(), BATCH, shuffle=True))
    record.finish(module.model)
