"""Backup workers: the server waits for the first workers - backups gradients of a step and drops the late ones.

Source: Chen et al. 2016, Revisiting Distributed Synchronous SGD (arXiv 1604.00981). With `cancel` the late
workers stop at the update, which Dutta et al. 2018 (arXiv 1803.01113) call K-sync.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from distsim.policies.policy import WithServer
from distsim.policies.rule import HELD, Decision
from distsim.validated_table import CountOrZero


@dataclass(frozen=True)
class Backup(WithServer):
    """Each update uses the first workers - backups gradients of its step.

    backups: how many of the cluster's workers an update does not wait for.
    cancel: False: a late gradient still crosses the network, is dropped on arrival, and its worker is answered
        at once with the newest parameters. True: late workers stop computing and sending at the update.
    """

    backups: Annotated[CountOrZero, Field(examples=[1])]
    cancel: bool = False

    kind: ClassVar = "backup"
    single_server: ClassVar = False

    def check_workers(self, workers: int) -> None:
        """Raises ValueError where no worker would be left to wait for."""
        if self.backups >= workers:
            raise ValueError(
                f"backups = {self.backups} must be fewer than the {workers} workers, which include them. "
                f"Cure: write backups = {max(workers - 1, 0)} or fewer, or add workers"
            )

    def rule(self, workers: int) -> BackupRule:
        """A fresh rule for one run."""
        return BackupRule(workers, self.backups, self.cancel)


class BackupRule:
    """An update when enough have arrived; late gradients are dropped, or cancelled before they arrive."""

    def __init__(self, workers: int, backups: int, cancel: bool) -> None:
        self.workers = workers
        self.needed = workers - backups
        self.cancel = cancel
        self.version = 0
        self.waiting: list[int] = []

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - one rule for every step
        if read_version < self.version:
            return Decision(applied=False, answers=((worker, self.version),))
        self.waiting.append(worker)
        if len(self.waiting) < self.needed:
            return HELD
        self.version += 1
        answered = range(self.workers) if self.cancel else sorted(self.waiting)
        self.waiting = []
        return Decision(self.version, answers=tuple([(worker, self.version) for worker in answered]))
