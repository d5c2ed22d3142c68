"""Where progress bars are shown: to somebody who looks, unless the environment says otherwise."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
import tqdm.notebook

from distsim import progress


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("disabled", "shown"), [(None, True), ("0", True), ("1", False)])
def test_a_bar_is_shown_unless_the_environment_forbids_it(
    monkeypatch: pytest.MonkeyPatch, disabled: str | None, shown: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    if disabled is not None:
        monkeypatch.setenv("TQDM_DISABLE", disabled)
    assert list(progress.progress([1, 2], "counting")) == [1, 2]
    assert ("counting" in terminal.getvalue()) is shown


def test_none_is_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    assert list(progress.progress([1, 2], "counting")) == [1, 2]
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("delay", [0.0, 2.0])
def test_a_notebook_keeps_no_bar_of_a_loop_that_is_left(monkeypatch: pytest.MonkeyPatch, delay: float) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(progress, "tqdm", tqdm.notebook.tqdm)
    monkeypatch.setattr(tqdm.notebook, "display", shown.append)
    monkeypatch.setattr(progress, "_watched", lambda: True)
    monkeypatch.setattr(progress, "DELAY_SECONDS", delay)
    for item in progress.progress([1, 2, 3], "counting", 3):
        if item == 2:
            break
    assert len(shown) == (delay == 0.0)
    assert all(bar.layout.visibility == "hidden" and not bar.children[1].bar_style for bar in shown)


def test_a_list_tells_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    assert list(progress.progress([1, 2], "counting")) == [1, 2]
    assert "0/2" in terminal.getvalue()
