"""Synchronous updates: the server waits for the gradient of every worker, then answers all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from distsim.policies.policy import WithServer
from distsim.policies.rule import HELD, Decision


@dataclass(frozen=True)
class Synchronous(WithServer):
    """Each update uses one gradient of every worker; the slowest worker sets the pace."""

    kind: ClassVar = "synchronous"
    server: ClassVar = "possible"
    single_server: ClassVar = False
    real_failures: ClassVar = True

    def rule(self, workers: int) -> SynchronousRule:
        """A fresh rule for one run."""
        return SynchronousRule(workers)


class SynchronousRule:
    """An update when all have arrived."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.version = 0
        self.waiting: list[int] = []

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - one rule for every step
        self.waiting.append(worker)
        if len(self.waiting) < self.workers:
            return HELD
        self.version += 1
        answered, self.waiting = sorted(self.waiting), []
        return Decision(self.version, answers=tuple([(worker, self.version) for worker in answered]))
