"""Confinement of submissions: a machine that cannot confine ranks grades a class only with --trust."""

from __future__ import annotations

import os
from pathlib import Path

from distsim.errors import InputError
from distsim.grading.nbgrader import TRUST_VARIABLE, autogrades
from distsim.testbed.namespaces import place_around
from distsim.testbed.sandbox import reason_against


def check_confined(trust: bool) -> None:
    """Raises InputError if submissions would run without confinement and `trust` is false."""
    if not trust and (reason := reason_against()):
        rule = f"would run without confinement here ({reason})"
        raise InputError.of(
            "submissions", "--all", rule, "grade on another machine, or write --trust if you trust them all"
        )


def check_unseen(asked: str, folder: Path) -> None:
    """Raises InputError if `folder` lies where ranks can read, such as among Python's packages."""
    if (place := place_around(folder)) is not None:
        rule = f"lies in {place}, which ranks can read"
        raise InputError.of(asked, str(folder), rule, "move it, for example into your home")


def warning() -> str | None:
    """The warning to print on a machine that cannot confine ranks, if this is one."""
    reason = reason_against()
    return f"this machine cannot confine submissions: {reason}. They run with your rights" if reason else None


def trust_variables(trust: bool) -> dict[str, str]:
    """The environment variables that make `trusted` true in a notebook's process."""
    return {TRUST_VARIABLE: "1"} if trust else {}


def trusted() -> bool:
    """Whether this process may run ranks without confinement: with --trust, or where the machine cannot confine them.

    nbgrader grades the code of others, so there only the settings allow it.
    """
    return os.environ.get(TRUST_VARIABLE) == "1" or (not autogrades() and reason_against() is not None)
