"""Work off the main thread: its progress, its end, its error, and its end on request."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from distsim.errors import InputError
from distsim.explorers.background_work import Background, CancelledError
from distsim.progress import Phase, Report

SECONDS = 30.0  # until what should have happened is taken to have failed


class Work:
    """Takes as long as the test wants: it reports until it may end."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, report: Report) -> str:
        report(Phase.counted("part", 1, 4))
        self.begun.set()
        while not self.may_end.wait(0.01):
            report(Phase.counted("part", 1, 4))
        report(Phase.counted("part", 3, 4))
        return "found"


class Place:
    """A `Background` that keeps what it is told."""

    def __init__(self) -> None:
        self.shares: list[float] = []
        self.told: list[Any] = []
        self.background = Background(lambda phase: self.shares.append(phase.share))

    def start(self, work: Any) -> None:
        self.background.start(work, self.told.append, self.told.append)


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.may_end.set()


@pytest.fixture
def place() -> Place:
    return Place()


def test_it_tells_its_progress_and_then_its_result(place: Place, work: Work) -> None:
    place.start(work)
    assert work.begun.wait(SECONDS)
    assert place.background.busy
    assert not place.told
    work.may_end.set()
    assert place.background.wait(SECONDS)
    assert place.told == ["found"]
    assert (place.shares[0], place.shares[-1]) == (0.25, 0.75)
    assert not place.background.busy


def test_cancelled_work_ends_and_the_next_piece_is_not_cancelled(place: Place, work: Work) -> None:
    place.start(work)
    assert work.begun.wait(SECONDS)
    place.background.cancel()
    assert place.background.wait(SECONDS)
    (error,) = place.told
    assert isinstance(error, CancelledError)
    work.may_end.set()
    place.start(work)
    assert place.background.wait(SECONDS)
    assert place.told[1:] == ["found"]


def test_a_second_piece_does_not_start_beside_the_first(place: Place, work: Work) -> None:
    place.start(work)
    with pytest.raises(RuntimeError, match="under way"):
        place.start(work)
    work.may_end.set()
    assert place.background.wait(SECONDS)
    assert place.told == ["found"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [InputError.of("amount", 9, "must be at most 8", "write 8"), ZeroDivisionError()])
def test_an_error_is_told(place: Place, error: Exception) -> None:
    def broken(_report: Report) -> None:
        raise error

    place.start(broken)
    assert place.background.wait(SECONDS)
    assert place.told == [error]
    assert not place.background.busy
