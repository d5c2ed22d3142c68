"""Confinement of submissions: a machine that cannot confine ranks grades a class only with --trust."""

from __future__ import annotations

import os

from distsim.errors import InputError
from distsim.testbed.sandbox import reason_against

TRUST_VARIABLE = "DISTSIM_GRADING_TRUST"


def check_confined(trust: bool) -> None:
    """Raises InputError if submissions would run without confinement and `trust` is false."""
    if not trust and (reason := reason_against()):
        rule = f"would run without confinement here ({reason})"
        raise InputError.of(
            "submissions", "--all", rule, "grade on another machine, or write --trust if you trust them all"
        )


def warning() -> str | None:
    """The warning to print on a machine that cannot confine ranks, if this is one."""
    reason = reason_against()
    return f"this machine cannot confine submissions: {reason}. They run with your rights" if reason else None


def trust_variables(trust: bool) -> dict[str, str]:
    """The environment variables that make `trusted` true in a notebook's process."""
    return {TRUST_VARIABLE: "1"} if trust else {}


def trusted() -> bool:
    """Whether this process may run ranks without confinement: with --trust, or if the machine cannot confine them."""
    return os.environ.get(TRUST_VARIABLE) == "1" or reason_against() is not None
