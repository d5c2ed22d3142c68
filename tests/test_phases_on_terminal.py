"""What a person sees on a terminal while a command works: a line within a second, and nothing of it elsewhere."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from distsim import example
from tests.runtime.own_models import GOOD

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

FIRST_SECONDS = 1.0
PATIENCE_SECONDS = 90.0
# What each command's line begins with once the command is loaded. FILE is a scenario, MODEL a file with a model.
LONG = {
    "measure FILE": "measure run: ",
    "compare FILE": "compare run: ",
    "simulate FILE": "simulate run: ",
    "calibrate": "calibrate: ",
    "profile MODEL:build": "profile my_model.py:build: ",
    "sweep FILE --vary policy.backups=0:3": "sweep run: ",
    "bench --quick": "bench: ",
    "validate": "validate: ",
    "grade 03 --submission labs/03_ring/solution.py": "grade 03_ring: ",
    "lab run 03 --folder labs/03_ring": "lab run 03_ring: ",
    "doctor": "doctor: ",
    "figure timeline FILE -o FILE.html": "figure timeline: ",
}
FEW = ("measure FILE", "simulate FILE")


class Terminal:
    """A pseudo-terminal as the standard error of a command, whose standard output is a pipe."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self._screen, theirs = os.openpty()
        environment = {key: value for key, value in os.environ.items() if key != "TQDM_DISABLE"}
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "distsim", *arguments], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
            cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""
        self.first_seconds = float("inf")

    def read(self, until: str | None = None) -> bool:
        """Reads until the text `until` has been seen, or the command has ended. Returns whether it was seen."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while until is None or until not in self.seen:
            assert time.monotonic() < give_up, f"not seen in time: {until!r} in {self.seen!r}"
            if not select.select([self._screen], [], [], 1.0)[0]:
                continue
            try:
                part = os.read(self._screen, 65536)
            except OSError:  # the command has closed the terminal
                return False
            if not part:
                return False
            self.first_seconds = min(self.first_seconds, time.monotonic() - self.start)
            self.seen += part.decode(errors="replace")
        return True

    def answer(self, text: str) -> None:
        """Types a line."""
        os.write(self._screen, f"{text}\n".encode())

    def close(self) -> None:
        """Ends the command and all that it has started."""
        try:
            tree = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            tree = []
        self.process.terminate()  # a real run then removes its folder
        try:
            self.process.communicate(timeout=20.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        for process in tree:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        os.close(self._screen)


@contextmanager
def terminal(command: str, folder: Path) -> Iterator[Terminal]:
    """The command on a terminal; ended afterwards."""
    named = command.replace("FILE", str(folder / "run.toml")).replace("MODEL", str(folder / "my_model.py"))
    opened = Terminal(named.split(), Path.cwd())
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a scenario that is named run."""
    run = example("backup_server").replacing({"name": "run", "steps": 8})
    (tmp_path / "run.toml").write_text(run.dumps(), "utf-8")
    (tmp_path / "my_model.py").write_text(GOOD, "utf-8")
    return tmp_path


@pytest.mark.alone
@pytest.mark.parametrize(
    "command", [*FEW, *(pytest.param(one, marks=pytest.mark.more) for one in LONG if one not in FEW)]
)
def test_within_a_second_a_long_command_says_something_and_then_what_it_does(command: str, folder: Path) -> None:
    for last in (False, True):  # once more on a busy machine
        with terminal(command, folder) as screen:
            assert screen.read(LONG[command]), screen.seen
            if screen.first_seconds < FIRST_SECONDS:
                return
            assert not last, f"silent for {screen.first_seconds:.2f} s"


@pytest.mark.parametrize(
    "command",
    ["simulate FILE --json", pytest.param("sweep FILE --vary policy.backups=0:3 --json", marks=pytest.mark.more)],
)
def test_with_json_nothing_is_shown(command: str, folder: Path) -> None:
    with terminal(command, folder) as screen:
        screen.read()
        assert screen.seen == ""


@pytest.mark.parametrize(
    "command", ["simulate FILE", pytest.param("sweep FILE --vary policy.backups=0:3", marks=pytest.mark.more)]
)
def test_in_a_pipe_nothing_is_shown(command: str, folder: Path) -> None:
    arguments = [part.replace("FILE", str(folder / "run.toml")) for part in command.split()]
    environment = {key: value for key, value in os.environ.items() if key != "TQDM_DISABLE"}
    done = subprocess.run(
        [sys.executable, "-m", "distsim", *arguments], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stderr == ""
    assert "\r" not in done.stdout


@pytest.mark.parametrize("answer", ["n", ""])
def test_long_work_that_is_answered_with_no_does_not_start(folder: Path, answer: str) -> None:
    long = example("synchronous_ring").replacing({"name": "run", "steps": 1_000_000})
    (folder / "run.toml").write_text(long.dumps(), "utf-8")
    with terminal("measure FILE", folder) as screen:
        assert screen.read("Start? [y/N]: "), screen.seen
        assert "on this machine." in screen.seen
        screen.answer(answer)
        screen.read()
        assert screen.process.wait(PATIENCE_SECONDS) == 2
        assert "distsim: not started. To make it shorter, take fewer steps" in screen.seen
        assert "processes" not in screen.seen, "nothing ran"


@pytest.mark.more
@pytest.mark.real
def test_a_real_run_tells_its_phases_and_leaves_nothing_on_the_screen(folder: Path) -> None:
    with terminal("measure FILE", folder) as screen:
        screen.read()
        told = re.findall(r"measure run: ([^|\r]*?) +(?:\||\d\d:)", screen.seen)
        for phase in ("starting 6 processes", r"step \d of 8", "merging the records"):
            assert any(re.fullmatch(phase, one) for one in told), (phase, told)
        assert re.search(r"starting 6 processes.*about \d+ s expected", screen.seen)
        assert not screen.seen.rpartition("\r")[2].strip()
        assert not screen.seen.rstrip("\r").rpartition("\r")[2].strip(), "the line is wiped"


@pytest.mark.more
@pytest.mark.real
def test_an_interrupt_leaves_one_message_and_no_process(folder: Path) -> None:
    with terminal("measure FILE", folder) as screen:
        screen.read("starting 6 processes")
        children = psutil.Process(screen.process.pid).children(recursive=True)
        screen.process.send_signal(signal.SIGINT)
        screen.read()
        assert screen.process.wait(PATIENCE_SECONDS) == 130
        assert screen.seen.replace("\r\n", "\n").rpartition("\r")[2].strip() == "distsim: interrupted"
        _, left = psutil.wait_procs(children, timeout=10.0)
        assert left == []
