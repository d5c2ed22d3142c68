"""What long work is doing: shown to somebody who looks, unless the environment says otherwise, and gone at the end."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any

import pytest
import tqdm.notebook

from distsim import progress
from distsim.progress import Phase


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True

    def left(self) -> list[str]:
        """What stands on its lines: a carriage return goes back to the start of a line, and what follows overwrites."""
        lines = []
        for written in self.getvalue().split("\n"):
            line = ""
            for part in written.split("\r"):
                line = part + line[len(part) :]
            lines.append(line.rstrip())
        return lines


def placed(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as standard error. A fixture cannot do it: pytest's capture would take its place."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    return found


@pytest.mark.parametrize(("disabled", "shown"), [(None, True), ("0", True), ("1", False)])
def test_progress_is_shown_unless_the_environment_forbids_it(
    monkeypatch: pytest.MonkeyPatch, disabled: str | None, shown: bool
) -> None:
    terminal = placed(monkeypatch)
    if disabled is not None:
        monkeypatch.setenv("TQDM_DISABLE", disabled)
    assert list(progress.progress([1, 2], "counting")) == [1, 2]
    with progress.bar("measure") as report:
        report(Phase.counted("step", 1, 2))
    with progress.opening("loading"):
        pass
    for words in ("counting: 0 of 2", "measure: step 1 of 2", "loading"):
        assert (words in terminal.getvalue()) is shown


def test_the_item_in_work_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = placed(monkeypatch)
    assert list(progress.progress([1, 2], "counting", name=lambda item: f"item {item}")) == [1, 2]
    assert "counting: 0 of 2, item 1" in terminal.getvalue()
    assert "counting: 1 of 2, item 2" in terminal.getvalue()


def test_nothing_is_shown_in_a_pipe_or_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = placed(monkeypatch)
    with progress.bar("measure", shown=False) as report:
        report(Phase("starting 6 processes"))
        assert list(progress.progress([1, 2], "counting")) == [1, 2]
    assert terminal.getvalue() == ""
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert list(progress.progress([1, 2], "counting")) == [1, 2]
    with progress.opening("loading"), progress.bar("measure") as report:
        report(Phase("starting 6 processes"))
    assert pipe.getvalue() == ""


def test_work_within_other_work_takes_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = placed(monkeypatch)
    with progress.bar("validate") as report:
        report(Phase.counted("table", 1, 3))
        list(progress.progress([1, 2], "cases"))
        report(Phase.counted("table", 2, 3))
    shown = [part.partition("|")[0].strip() for part in terminal.getvalue().split("\r")]
    told = [words for words in dict.fromkeys(shown) if words and "preparing" not in words]
    assert told == [
        "validate: table 1 of 3",
        "validate: cases: 0 of 2",
        "validate: cases: 1 of 2",
        "validate: table 2 of 3",
    ]


def test_an_expected_time_is_told_from_the_first_phase_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = placed(monkeypatch)
    with progress.bar("measure") as report:
        report(Phase("starting 6 processes", seconds=40.0))
        report(Phase.counted("step", 1, 2))
    assert terminal.getvalue().count("00:00, about 40 s expected") >= 2


def test_a_long_name_stays_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = placed(monkeypatch)
    with progress.bar("x" * 300) as report:
        report(Phase("y" * 300))
        report(Phase.counted("step", 1, 2))
    assert max(map(len, terminal.getvalue().split("\r"))) < progress.USUAL_COLUMNS


def test_the_clock_goes_on_while_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = placed(monkeypatch)
    drawn = progress.threading.Event()
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.01)
    true_draw = progress._Shown._draw

    def draw(self: Any) -> None:
        true_draw(self)
        drawn.set()

    monkeypatch.setattr(progress._Shown, "_draw", draw)
    with progress.bar("simulate"):
        drawn.clear()
        assert drawn.wait(20.0)
    assert "simulate" in terminal.getvalue()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_interrupted_work_leaves_nothing_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    terminal = placed(monkeypatch)
    with pytest.raises(error), progress.opening("loading"), progress.bar("measure") as report:  # noqa: PT012
        report(Phase.counted("step", 1, 2))
        terminal.write("^C")
        raise error
    assert terminal.left() == [""]


def test_a_line_that_is_interrupted_while_it_is_drawn_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_again = threading.Event()

    class Interrupted(Terminal):
        def write(self, text: str) -> int:
            if "step 1 of 2" in text:
                if threading.current_thread() is threading.main_thread():
                    raise KeyboardInterrupt
                drawn_again.set()
            return super().write(text)

    placed(monkeypatch)
    terminal = Interrupted()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.01)
    with progress.bar("measure") as report:
        with pytest.raises(KeyboardInterrupt):
            report(Phase.counted("step", 1, 2))
        assert drawn_again.wait(20.0)
    assert terminal.left() == [""]


@pytest.mark.parametrize("delay", [0.0, 2.0])
def test_a_notebook_keeps_no_bar_of_a_loop_that_is_left(monkeypatch: pytest.MonkeyPatch, delay: float) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(tqdm.notebook, "display", shown.append)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    monkeypatch.setattr(progress, "DELAY_SECONDS", delay)
    for item in progress.progress([1, 2, 3], "counting", 3):
        if item == 2:
            break
    assert len(shown) == (delay == 0.0)
    assert all(bar.layout.visibility == "hidden" and not bar.children[1].bar_style for bar in shown)
