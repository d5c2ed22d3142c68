"""What the tests of the sandbox share: where it confines, bodies that run in it, and what they say."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from distsim.testbed.capped_output import Capped
from distsim.testbed.process_end import ProcessEnd
from distsim.testbed.sandbox import Sandbox, reason_against

confining = pytest.mark.skipif(reason_against() is not None, reason=str(reason_against()))
TRUST = pytest.mark.parametrize("trusted", [pytest.param(False, marks=confining), True])
MEBIBYTE = 2**20


def traces() -> tuple[list[int], list[str], str]:
    """This process's children, descriptors and mounts."""
    mounts = Path("/proc/self/mounts").read_text() if sys.platform == "linux" else ""
    return [child.pid for child in psutil.Process().children()], sorted(os.listdir("/dev/fd"))[:-1], mounts


def enclosed(*bodies: Callable[[], None], folder: Path, **how: Any) -> list[tuple[ProcessEnd | None, str]]:
    """Each body's ending and what it printed. Of the folder, they get tasks.py and a file named link."""
    with Sandbox.start(bodies, folder=folder, names=["tasks.py", "link"], **how) as sandbox:
        outputs = [Capped(descriptor) for descriptor in sandbox.outputs]
        for output in outputs:
            output.read_all()
        endings = sandbox.wait(60.0)
    return list(zip(endings, [output.text for output in outputs], strict=True))


def say(body: Callable[[], object]) -> Callable[[], None]:
    """The body that prints what `body` gives, or the kind of its error."""

    def said() -> None:
        try:
            print(body())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            print(type(error).__name__, error)

    return said


def answer_of(body: Callable[[], object], folder: Path, **how: Any) -> str:
    """What one body gives, or its error, where it ends well."""
    ((ending, text),) = enclosed(say(body), folder=folder, **how)
    assert ending == ProcessEnd(code=0)
    return text.rstrip("\n")


def awaited(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it became true in this time."""
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.01)
    return true()
