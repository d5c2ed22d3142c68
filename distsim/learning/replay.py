"""Learning on a trace's clock: real gradients, in the order in which a simulated or measured run applied them.

read      take the parameters of the version that the worker had read,
compute   compute the gradient on the worker's own samples,
apply     make the update that the trace names by the mean of its gradients, added up in the trace's order.

With local SGD each worker descends from the version it read, and an update is the mean of the workers' parameters.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from distsim.errors import InputError
from distsim.learning.batches import Batches
from distsim.learning.curve import Curve
from distsim.learning.objective import Numbers, Objective
from distsim.learning.optimizers import Descent, Optimizer
from distsim.learning.updates import Gradient, RecordedUpdates, Update, recorded_updates
from distsim.progress import progress
from distsim.trace import Trace

POINTS = 200


def replay(
    trace: Trace,
    objective: Objective,
    optimizer: Optimizer,
    *,
    batch: int | None = None,
    seed: int | None = None,
    touched: float | None = None,
    points: int = POINTS,
    target: float | None = None,
) -> Curve:
    """Learns `objective` in the order of `trace`. The same arguments give bit-identical curves.

    batch: samples per worker and step. seed: of the first parameters and of the samples' order. touched: the share of
    entries, the largest, that a gradient keeps. All three default to the values in the trace's scenario.
    points: at how many updates, evenly spaced, the loss over all samples is evaluated. target: the replay ends at the
    first evaluated loss at or below this.
    Raises InputError where the trace lacks something that a replay needs.

    >>> from distsim import example, simulate
    >>> from distsim.learning.optimizers import Sgd
    >>> from distsim.learning.quadratic import Quadratic
    >>> curve = replay(simulate(example("synchronous_ring")), Quadratic(), Sgd(rate=0.1), batch=8)
    >>> curve.effective_batch, bool(curve.loss[-1] < 0.1 * curve.loss[0])    # 4 workers x 8 samples
    (32.0, True)
    """
    recorded = recorded_updates(trace)
    batches = Batches(
        objective.samples,
        recorded.workers,
        recorded.batch if batch is None else batch,
        recorded.seed if seed is None else seed,
    )
    share = recorded.touched if touched is None else touched
    if not 0.0 < share <= 1.0:
        raise InputError.of("touched", share, "must be above 0 and at most 1", "write touched = 1 for all of them")
    if not isinstance(points, int) or points < 1:
        raise InputError.of("points", points, "must be a whole number above 0", "write points = 200")
    run = LocalReplay if recorded.averages_parameters else Replay
    # A loss that grows without bound is a valid result.
    with np.errstate(over="ignore", invalid="ignore"):
        return run(recorded, objective, optimizer, batches, share).curve(points, target)


class Replay:
    """Updates that descend by the mean of their gradients."""

    def __init__(
        self,
        recorded: RecordedUpdates,
        objective: Objective,
        optimizer: Optimizer,
        batches: Batches,
        touched: float,
    ) -> None:
        self.recorded = recorded
        self.objective = objective
        self.optimizer = optimizer
        self.batches = batches
        self.touched = touched
        self.parameters = objective.start(batches.seed)
        self.versions = {0: self.parameters}  # the versions that later gradients read
        self.descent = optimizer.begin()

    def curve(self, points: int, target: float | None) -> Curve:
        """Makes all updates and evaluates the loss on the way."""
        updates = len(self.recorded.seconds)
        seen = np.unique(np.linspace(0, updates, min(points, updates) + 1).round().astype(np.int64))
        looks = set(seen.tolist())
        losses, accuracies = [self.objective.loss(self.parameters)], [self.objective.accuracy(self.parameters)]
        batch_losses, counts = [], []
        forgotten = self._forgotten()
        for update in progress(self.recorded.updates(), "replay", updates):
            looked = update.version in looks
            batch_loss, count = self.apply(update)
            batch_losses.append(batch_loss)
            counts.append(count)
            self.versions[update.version] = self.parameters
            for version in forgotten[update.version]:
                del self.versions[version]
            if looked:
                losses.append(self.objective.loss(self.parameters))
                accuracies.append(self.objective.accuracy(self.parameters))
                if target is not None and losses[-1] <= target:
                    break
        seen = seen[: len(losses)]
        samples = np.concatenate([[0], np.cumsum(counts)])
        return Curve(
            update=seen,
            samples=samples[seen],
            seconds=np.concatenate([[0.0], self.recorded.seconds])[seen],
            loss=np.array(losses),
            accuracy=np.array(accuracies),
            batch_loss=np.array(batch_losses),
            update_samples=np.array(counts),
            parameters=self.parameters,
        )

    def apply(self, update: Update) -> tuple[float, int]:
        """Makes one update; returns the mean loss of its batches, and how many samples they had."""
        loss, count, total, weight = self.summed(update)
        self.parameters = self.descent.step(self.parameters, total, 1.0 / weight)
        return loss, count

    def summed(self, update: Update) -> tuple[float, int, Numbers, float]:
        """The mean loss of an update's batches, their number of samples, and the sum of its gradients with its weight.

        Every step of a worker has the weight 1, and a part of a step its share of the samples.
        """
        if len(update.gradients) == 1:
            gradient = update.gradients[0]
            return *self.compute(gradient, self.versions[gradient.read_version]), 1.0
        loss, count, weight, total = 0.0, 0, 0.0, np.zeros_like(self.parameters)
        for gradient in update.gradients:
            own_loss, samples, own = self.compute(gradient, self.versions[gradient.read_version])
            count += samples
            if gradient.whole:
                part = 1.0
                total += own
            else:
                part = samples / len(self.batches.of(gradient.worker, gradient.step))
                total += part * own
            loss += part * own_loss
            weight += part
        return loss / weight, count, total, weight

    def compute(self, gradient: Gradient, parameters: Numbers) -> tuple[float, int, Numbers]:
        """The batch's mean loss, its number of samples and the gradient at `parameters`."""
        samples = self.batches.of(gradient.worker, gradient.step)
        if not gradient.whole:
            samples = samples[round(gradient.first * len(samples)) : round(gradient.last * len(samples))]
            if not len(samples):
                return 0.0, 0, np.zeros_like(parameters)
        loss, found = self.objective.gradient(parameters, samples)
        if self.touched < 1.0:
            keep_largest(found, self.touched)
        return loss, len(samples), found

    def _forgotten(self) -> list[list[int]]:
        """For each update, the versions that no later gradient reads."""
        forgotten: list[list[int]] = [[] for _ in self.recorded.last_read]
        for version, last in enumerate(self.recorded.last_read.tolist()):
            forgotten[max(last, version)].append(version)
        return forgotten


class LocalReplay(Replay):
    """Updates that are the mean of the workers' parameters. Each worker has its own optimizer."""

    @cached_property
    def descents(self) -> list[Descent]:
        """The optimizer of each worker."""
        return [self.optimizer.begin() for _ in range(self.recorded.workers)]

    def apply(self, update: Update) -> tuple[float, int]:
        """Makes one update, and returns as in `Replay`."""
        losses, counts = [], 0
        own: dict[int, Numbers] = {}
        for gradient in update.gradients:
            parameters = own.get(gradient.worker, self.versions[gradient.read_version])
            loss, count, found = self.compute(gradient, parameters)
            own[gradient.worker] = self.descents[gradient.worker].step(parameters, found)
            losses.append(loss)
            counts += count
        self.parameters = np.add.reduce(list(own.values())) / len(own)
        return math.fsum(losses) / len(losses), counts


def keep_largest(gradient: Numbers, share: float) -> None:
    """Keeps a share of the entries, the largest, and sets all others to 0.

    >>> gradient = np.array([3.0, -4.0, 1.0, 2.0])
    >>> keep_largest(gradient, 0.5)
    >>> gradient.tolist()
    [3.0, -4.0, 0.0, 0.0]
    """
    small = len(gradient) - max(round(share * len(gradient)), 1)
    if small:
        places: NDArray[np.intp] = np.argpartition(np.abs(gradient), small - 1)[:small]
        gradient[places] = 0.0
