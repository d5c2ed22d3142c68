"""The way into the command: Ctrl-C while it imports is one message and exit code 130."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

INTERRUPTED_AT = """
import os, runpy, signal, sys

class CtrlC:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.{handler})
sys.meta_path.insert(0, CtrlC())
sys.argv = ["distsim", "simulate", "--help"]
runpy.run_module("distsim", run_name="__main__", alter_sys=True)
"""


def interrupted(module: str, handler: str = "default_int_handler") -> subprocess.CompletedProcess[str]:
    """`python -m distsim simulate --help`, which gets Ctrl-C when it comes to import that module."""
    code = INTERRUPTED_AT.format(module=module, handler=handler)
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["distsim.cli.main", "pydantic", "numpy", "distsim.metrics", "distsim.cli.simulate"])
def test_ctrl_c_while_it_imports_is_one_message(module: str) -> None:
    done = interrupted(module)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "distsim: interrupted\n")


def read_to_end(screen: int) -> bytes:
    """All that programs wrote to a terminal that nobody holds any more: it comes in parts."""
    seen = b""
    with suppress(OSError):  # so Linux tells the end
        while part := os.read(screen, 65536):
            seen += part
    return seen


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_the_message_stands_alone_on_its_line() -> None:
    screen, theirs = os.openpty()
    code = INTERRUPTED_AT.format(module="numpy", handler="default_int_handler")
    environment = {key: value for key, value in os.environ.items() if key != "TQDM_DISABLE"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, stderr=theirs, check=False)
    os.close(theirs)
    seen = read_to_end(screen).decode()
    os.close(screen)
    assert seen.startswith("\rdistsim: loading …\r"), seen
    assert seen.removesuffix("\r\n").rpartition("\r")[2] == "distsim: interrupted"


def test_where_ctrl_c_is_ignored_it_goes_on() -> None:
    done = interrupted("distsim.metrics", "SIG_IGN")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: distsim simulate ")


def test_the_installed_command_comes_in_by_this_way() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"]["distsim"] == "distsim.cli.entry:main"


def test_a_program_that_calls_the_command_keeps_its_own_ctrl_c() -> None:
    """Also in a thread of its own, where nobody may say what a signal does."""
    code = """
import gc, signal, threading
from distsim.cli.main import distsim
gc.disable()
call = lambda: distsim.main(["simulate", "--help"], standalone_mode=False)
thread = threading.Thread(target=call)
thread.start()
thread.join()
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, gc.isenabled(), gc.get_freeze_count())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ")
    assert done.stdout.splitlines()[-1] == "True False 0"
