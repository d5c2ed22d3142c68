"""Asynchronous updates: every gradient makes an update at once, and the server answers its worker with that version.

Source: Recht et al. 2011, Hogwild! (arXiv 1106.5730), for sparse gradients; Dutta et al. 2018 for the run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Gt, Le

from distsim.policies.policy import WithServer
from distsim.policies.rule import Decision


@dataclass(frozen=True)
class Asynchronous(WithServer):
    """No worker waits for another. A gradient is applied to parameters that others have changed since they were read.

    touched: share of the parameters that one gradient touches; two concurrent updates collide only where they overlap.
    stop: "total": the run ends after steps x workers updates; "per_worker": each worker does `steps`.
    """

    touched: Annotated[float, Gt(0.0), Le(1.0)] = 1.0
    stop: Literal["total", "per_worker"] = "total"

    kind: ClassVar = "asynchronous"
    has_global_step: ClassVar = False
    single_server: ClassVar = False
    receive: ClassVar = "fifo"

    def updates(self, steps: int, workers: int) -> int:
        """The number of updates after which the run ends."""
        return steps * workers

    def rule(self, workers: int) -> AsynchronousRule:  # noqa: ARG002 - one rule for any number
        """A fresh rule for one run."""
        return AsynchronousRule()


class AsynchronousRule:
    """An update at every arrival."""

    def __init__(self) -> None:
        self.version = 0

    def arrived(self, worker: int, step: int, read_version: int) -> Decision:  # noqa: ARG002 - every gradient is alike
        self.version += 1
        return Decision(self.version, True, ((worker, self.version),))
