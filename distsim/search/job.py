"""What a worker does in one piece, and when it did it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from distsim.errors import InputError

Settings = Mapping[str, float]


@dataclass(frozen=True)
class Job:
    """Epochs of one trial, which one worker trains without a pause.

    trial: its number, from 0. settings: what it tries, such as the batch. before, until: the epochs of which it has
    learnt already, and until which it learns now.

    >>> job = Job(trial=3, settings={"batch": 8}, until=10)
    >>> job.epochs, job.label
    (10, 'batch 8')
    """

    trial: int
    settings: Settings
    until: int
    before: int = 0

    @property
    def epochs(self) -> int:
        """The epochs of this job."""
        return self.until - self.before

    @property
    def label(self) -> str:
        """The settings in words."""
        return ", ".join(f"{name} {value:g}" for name, value in self.settings.items())


@dataclass(frozen=True)
class Placed:
    """A job on a worker. start_seconds, end_seconds: on the search's clock, which begins with its first job.

    loss: of the samples held out, at the job's end.
    """

    job: Job
    worker: int
    start_seconds: float
    end_seconds: float
    loss: float

    @property
    def seconds(self) -> float:
        """How long the job took."""
        return self.end_seconds - self.start_seconds


class Source(Protocol):
    """Who chooses the next job. One object is good for one search."""

    def job(self) -> Job | None:
        """The next job for an idle worker; None where it must wait for a running job, or nothing is left."""

    def done(self, job: Job, loss: float) -> None:
        """Takes note of a job that has ended."""


def search_seconds(placed: Sequence[Placed]) -> float:
    """The end of the last job. Raises InputError for a search without jobs."""
    if not placed:
        raise InputError.of("placed", [], "must hold a job", "give the source at least one trial")
    return max(one.end_seconds for one in placed)


def best(placed: Sequence[Placed]) -> Placed:
    """The job with the lowest loss among those with the most epochs; the earliest of several.

    A loss that is no number counts as the worst. Raises InputError for a search without jobs.
    """
    search_seconds(placed)
    most = max(one.job.until for one in placed)
    ended = [one for one in placed if one.job.until == most]
    return min(ended, key=lambda one: (one.loss != one.loss, one.loss, one.end_seconds))
