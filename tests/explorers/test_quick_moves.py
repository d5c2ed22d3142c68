"""Which of several quick moves are drawn, on a clock of the tests' own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from distsim.explorers import quick_moves
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.quick_moves import QUICK_SECONDS, QUIET_SECONDS, QuickMoves


class Loop:
    """An event loop whose clock the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: dict[object, tuple[float, Callable[[], object]]] = {}

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: Any) -> Handle:
        handle = Handle(self)
        self.due[handle] = (self.now + seconds, lambda: call(*arguments))
        return handle

    def goes_on(self, seconds: float) -> None:
        """Time passes, and what falls due is called."""
        self.now += seconds
        for handle, (when, call) in list(self.due.items()):
            if when <= self.now:
                del self.due[handle]
                call()


class Handle:
    """Of a call that waits."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def cancel(self) -> None:
        del self._loop.due[self]


class Moved:
    """A control whose moves are drawn."""

    def __init__(self, loop: Loop, drawing_seconds: float = 0.0) -> None:
        self.value, self.drawn, self._loop, self._seconds = 0, [], loop, drawing_seconds  # type: ignore[var-annotated]
        self.moves = QuickMoves(self._draw)

    def to(self, value: int) -> None:
        self.value = value
        self.moves.moved()

    def _draw(self) -> None:
        self.drawn.append(self.value)
        self._loop.now += self._seconds


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    """The loop that handles the browser's messages."""
    made = Loop()
    monkeypatch.setattr(quick_moves, "browsers_loop", lambda: made)
    return made


def test_a_lone_move_is_drawn_at_once_and_so_is_the_next_after_a_pause(loop: Loop) -> None:
    control = Moved(loop)
    control.to(1)
    assert control.drawn == [1]
    loop.goes_on(2 * QUICK_SECONDS)
    control.to(2)
    assert control.drawn == [1, 2]


def test_of_ten_quick_moves_the_first_and_the_last_are_drawn(loop: Loop) -> None:
    control = Moved(loop)
    for value in range(1, 11):
        control.to(value)
        loop.goes_on(QUIET_SECONDS / 2)
    assert control.drawn == [1]
    loop.goes_on(QUIET_SECONDS)
    assert control.drawn == [1, 10]
    assert not loop.due


def test_moves_that_waited_for_a_long_drawing_are_drawn_once(loop: Loop) -> None:
    """They come one right after the other when the drawing ends."""
    control = Moved(loop, drawing_seconds=1.0)
    for value in (1, 2, 3, 4):
        control.to(value)
    loop.goes_on(QUIET_SECONDS)
    assert control.drawn == [1, 4]


def test_a_dropped_move_is_not_drawn(loop: Loop) -> None:
    control = Moved(loop)
    control.to(1)
    control.to(2)
    control.moves.drop()
    loop.goes_on(1.0)
    assert control.drawn == [1]


def test_moves_that_wait_are_drawn_at_once_when_they_are_needed(loop: Loop) -> None:
    control = Moved(loop)
    control.to(1)
    control.moves.flush()
    assert control.drawn == [1]
    control.to(2)
    control.moves.flush()
    assert control.drawn == [1, 2]
    loop.goes_on(1.0)
    assert control.drawn == [1, 2]


def test_a_real_run_takes_the_newest_move(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the move still waits for the quiet after it."""
    view = EXPLORERS["your_cluster"].open()
    started: list[Callable[[Any], Any]] = []
    monkeypatch.setattr(view.real_run.background, "start", lambda work, *_: started.append(work))
    monkeypatch.setattr("distsim.explorers.real_run_panel.run_for_real", lambda scenario, *_: scenario)
    for workers in (2, 3):
        view.controls["workers"].value = workers
    assert view.parameters.workers == 2  # the second move waits
    view.real_run.button.click()
    (work,) = started
    assert work(None).cluster.workers == 3
    assert not loop.due


@pytest.mark.usefixtures("loop")
def test_a_real_run_does_not_start_where_the_newest_move_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    view = EXPLORERS["your_cluster"].open()
    monkeypatch.setattr(view.real_run.background, "start", lambda *_: pytest.fail("it has started"))
    monkeypatch.setattr(
        "distsim.explorers.real_run_panel.obstacle", lambda of: "no" if of.cluster.workers == 3 else None
    )
    for workers in (2, 3):
        view.controls["workers"].value = workers
    view.real_run.button.click()
    assert view.real_run.button.disabled
    assert "Not here: no." in view.real_run.why.value


def test_moves_from_python_are_drawn_before_the_assignment_returns() -> None:
    control = Moved(Loop())
    for value in (1, 2, 3):
        control.to(value)
    assert control.drawn == [1, 2, 3]
