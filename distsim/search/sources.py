"""Who chooses the next job of a search."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from distsim.errors import InputError
from distsim.search.job import Job, Settings

if TYPE_CHECKING:
    import optuna


class Queue:
    """Trials in the order given. On idle workers this is list scheduling (Graham 1966).

    >>> queue = Queue([{"batch": 8}, {"batch": 32}], epochs=10)
    >>> [queue.job().label, queue.job().label, queue.job()]
    ['batch 8', 'batch 32', None]
    """

    def __init__(self, trials: Sequence[Settings], epochs: int) -> None:
        self._left = deque(Job(number, settings, epochs) for number, settings in enumerate(trials))

    def job(self) -> Job | None:
        """The first trial that is left."""
        return self._left.popleft() if self._left else None

    def done(self, job: Job, loss: float) -> None:
        """A queue learns nothing from an outcome."""


class Asked:
    """Trials that an Optuna study chooses: it is asked when a worker is idle, and told the loss when a job has ended.

    study: its sampler makes the search random or Bayesian. space: a distribution of Optuna for each setting. trials:
    how many. A loss that is no number is told as infinite, which samplers rank last.
    """

    def __init__(
        self, study: optuna.Study, space: Mapping[str, optuna.distributions.BaseDistribution], trials: int, epochs: int
    ) -> None:
        self._study, self._space, self._trials, self._epochs = study, dict(space), trials, epochs
        self._running: dict[int, optuna.Trial] = {}
        self._begun = 0

    def job(self) -> Job | None:
        """What the study proposes next, knowing all trials told so far."""
        if self._begun == self._trials:
            return None
        trial = self._study.ask(self._space)
        self._running[self._begun] = trial
        settings: dict[str, Any] = trial.params
        self._begun += 1
        return Job(self._begun - 1, settings, self._epochs)

    def done(self, job: Job, loss: float) -> None:
        """Tells the study."""
        self._study.tell(self._running.pop(job.trial), math.inf if math.isnan(loss) else loss)


class Halving:
    """Successive halving: all trials learn for a few epochs, the best of them go on, and so forth.

    A rung is a number of epochs: `least`, then each `factor` times the one before; the last one is moved to `most`.
    When all trials of a rung have ended, the best floor(n / factor) of its n, and at least one, go on from their
    checkpoints to the next.
    Source: Jamieson and Talwalkar 2016 (arXiv 1502.07943), with the factor and the rungs of Li and others 2020.

    >>> source = Halving([{"batch": 8}, {"batch": 32}], least=1, most=4, factor=2)
    >>> source.rungs
    [1, 2, 4]
    >>> jobs = [source.job(), source.job()]
    >>> source.job() is None     # both trials run
    True
    >>> for job, loss in zip(jobs, (0.5, 0.4)):
    ...     source.done(job, loss)
    >>> source.job()
    Job(trial=1, settings={'batch': 32}, until=2, before=1)
    """

    def __init__(self, trials: Sequence[Settings], least: int, most: int, factor: int = 3) -> None:
        if factor < 2:
            raise InputError.of("factor", factor, "must be 2 or more", "write factor = 3")
        if not 1 <= least <= most:
            raise InputError.of("least", least, f"must be from 1 to most, which is {most}", "write least = 1")
        if not trials:
            raise InputError.of("trials", list(trials), "must hold a trial", 'write [{"batch": 8}]')
        self.rungs = [least]
        while self.rungs[-1] * factor <= most:
            self.rungs.append(self.rungs[-1] * factor)
        self.rungs[-1] = most
        self._trials, self._factor = list(trials), factor
        self._ended: list[dict[int, float]] = [{} for _ in self.rungs]  # by rung: the loss of each trial
        self._next = deque((number, 0) for number in range(len(trials)))  # a trial and its rung
        self._running = 0

    def job(self) -> Job | None:
        """A trial of this rung, while one is left; None until the last of them has ended."""
        if not self._next:
            return None
        self._running += 1
        return self._job(*self._next.popleft())

    def done(self, job: Job, loss: float) -> None:
        """After the last of a rung, chooses those that go on."""
        rung = self._note(job, loss)
        self._running -= 1
        if not self._running and not self._next and rung + 1 < len(self.rungs):
            count = max(len(self._ended[rung]) // self._factor, 1)
            self._next.extend((number, rung + 1) for number in self._ranked(rung)[:count])

    def _job(self, trial: int, rung: int) -> Job:
        return Job(trial, self._trials[trial], self.rungs[rung], self.rungs[rung - 1] if rung else 0)

    def _note(self, job: Job, loss: float) -> int:
        rung = self.rungs.index(job.until)
        self._ended[rung][job.trial] = math.inf if math.isnan(loss) else loss
        return rung

    def _ranked(self, rung: int) -> list[int]:
        """The trials that have ended in a rung, the lowest loss first."""
        return sorted(self._ended[rung], key=lambda trial: (self._ended[rung][trial], trial))


class AsynchronousHalving(Halving):
    """Successive halving that waits for no rung, called ASHA: an idle worker promotes a trial or begins a new one.

    It looks from the highest rung down for a trial among the best floor(n / factor) of the n that have ended there so
    far, and that has not been promoted yet. Early promotions are guesses: later trials may be better. Source: Li and
    others 2020 (arXiv 1810.05934). Raises InputError for so few trials that none would reach the last rung.

    >>> source = AsynchronousHalving([{"batch": 8}] * 3, least=1, most=2, factor=2)
    >>> jobs = [source.job(), source.job()]
    >>> for job, loss in zip(jobs, (0.5, 0.4)):
    ...     source.done(job, loss)
    >>> source.job()     # trial 1 is the better half
    Job(trial=1, settings={'batch': 8}, until=2, before=1)
    """

    def __init__(self, trials: Sequence[Settings], least: int, most: int, factor: int = 3) -> None:
        super().__init__(trials, least, most, factor)
        enough = factor ** (len(self.rungs) - 1)
        if len(trials) < enough:
            raise InputError.of(
                "trials", len(trials), f"are too few: with {len(self.rungs)} rungs, none of them would reach the last",
                f"give {enough} or more, or a larger `least`",
            )  # fmt: skip
        self._promoted: list[set[int]] = [set() for _ in self.rungs]

    def job(self) -> Job | None:
        """A promotion if there is one, or else the next new trial."""
        for rung in reversed(range(len(self.rungs) - 1)):
            for trial in self._ranked(rung)[: len(self._ended[rung]) // self._factor]:
                if trial not in self._promoted[rung]:
                    self._promoted[rung].add(trial)
                    return self._job(trial, rung + 1)
        return self._job(*self._next.popleft()) if self._next else None

    def done(self, job: Job, loss: float) -> None:
        """Takes note of the loss."""
        self._note(job, loss)
