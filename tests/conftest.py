"""Shared by all tests: tools that may be missing, the two sizes of long tests, one seed for hypothesis."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

from distsim.errors import InputError

WHOLE = os.environ.get("DISTSIM_TESTS") == "whole"
NO_SKIPS = os.environ.get("DISTSIM_NO_SKIPS") == "1"
collect_ignore = ["labs/horovod"]  # scripts beside which a test puts the tasks.py that they import
LONG = {"whole", "thorough"}  # marks of tests that are left to `make test-more`
TOOLS = {"chromium": "chromium", "iproute2": "ip"}

settings.register_profile("distsim", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("distsim")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # set by a shell's &: processes of tests would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def whole() -> Callable[[int, int], int]:
    """`whole(reduced, full)` is `full` under `make test-all`, else `reduced`."""
    return lambda reduced, full: full if WHOLE else reduced


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process: (exit code, standard output, standard error)."""
    from distsim.cli.main import main

    def run_main(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["distsim", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run_main


@pytest.fixture(scope="session")
def or_input_error() -> Callable[[], AbstractContextManager[None]]:
    """In `with or_input_error():` the block may succeed or raise InputError with a cure. Any other error fails."""

    @contextmanager
    def block() -> Iterator[None]:
        try:
            yield
        except InputError as error:
            if "Cure: " not in str(error):
                raise

    return block


def _leave_out(config: pytest.Config, items: list[pytest.Item], marker: str, *, unless: Callable[[], bool]) -> None:
    """Deselects the tests with this marker unless `unless()`, which is called only if there are such tests."""
    marked = [item for item in items if item.get_closest_marker(marker)]
    if marked and not unless():
        items[:] = [item for item in items if not item.get_closest_marker(marker)]
        config.hook.pytest_deselected(items=marked)


def _place(items: list[pytest.Item]) -> None:
    """Marks long tests `more`. Raises UsageError where a mark is not in the test's file, where the Makefile looks."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & LONG:
            item.add_marker(pytest.mark.more)
        for mark in marks & {*LONG, "more", "alone"}:
            if f"mark.{mark}" not in _text(item.path):
                raise pytest.UsageError(f"{item.path}: write pytest.mark.{mark} in this file, so that make finds it")


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.hookimpl(tryfirst=True)  # before pytest looks at -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _place(items)
    _leave_out(config, items, "thorough", unless=lambda: WHOLE)
    _leave_out(config, items, "cuda", unless=lambda: import_module("torch").cuda.is_available())
    for item in items:
        for marker, program in TOOLS.items():
            if item.get_closest_marker(marker) and shutil.which(program) is None:
                item.add_marker(pytest.mark.skip(reason=f"needs {program} on the PATH (Debian package {marker})"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run for a skipped test under DISTSIM_NO_SKIPS=1, where every tool is installed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if NO_SKIPS and skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"DISTSIM_NO_SKIPS=1, but {len(skipped)} tests were skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
