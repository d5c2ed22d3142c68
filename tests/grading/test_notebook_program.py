"""The program that runs a notebook gets what the grader gives it."""

from __future__ import annotations

import gc
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from nbval import kernel

from distsim.grading import notebook_run
from distsim.grading.lab import NOTEBOOK, Lab
from distsim.grading.notebook_run import START_SECONDS, StoppedError
from distsim.runtime.launch import lifeline

PROGRAM = "distsim.runtime.notebook_program"


def test_the_notebook_and_its_time_limits_reach_nbval(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[Sequence[str]] = []
    options: list[str] = []

    def started(command: Sequence[str], **_given: object) -> NoReturn:
        commands.append(command)
        raise StoppedError

    monkeypatch.setattr(notebook_run, "started", started)
    with pytest.raises(StoppedError):
        notebook_run.run(lab, b"", seed=1, server=tmp_path)
    (command,) = commands
    assert list(command[1:3]) == ["-m", PROGRAM]
    monkeypatch.setattr(sys, "argv", [PROGRAM, *command[3:]])
    monkeypatch.setattr(lifeline, "keep", lambda *_given, **_more: None)
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(kernel, "KernelManager", kernel.KernelManager)  # so that it is put back
    monkeypatch.setattr(pytest, "main", lambda given: options.extend(given) or 5)
    monkeypatch.delitem(sys.modules, PROGRAM, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(PROGRAM, run_name="__main__")
    assert ended.value.code == 5
    assert lab.about.check_seconds != START_SECONDS
    assert f"--nbval-cell-timeout={lab.about.check_seconds}" in options
    assert f"--nbval-kernel-startup-timeout={START_SECONDS}" in options
    assert options[-1].endswith(f"{lab.key}/{NOTEBOOK}")
