"""Whether a submission's ranks are confined: always where this machine can; else only by somebody's word."""

from __future__ import annotations

import os

from distsim.errors import InputError
from distsim.testbed.sandbox import reason_against

TRUST_VARIABLE = "DISTSIM_GRADING_TRUST"


def check_confined(trust: bool) -> None:
    """Raises InputError where strangers' code would run unconfined, and nobody said that it may."""
    if not trust and (reason := reason_against()):
        rule = f"would run without confinement here ({reason})"
        raise InputError.of(
            "submissions", "--all", rule, "grade on another machine, or write --trust if you trust them all"
        )


def warning() -> str | None:
    """The sentence about a machine that cannot confine."""
    reason = reason_against()
    return f"this machine cannot confine what it grades: {reason}. It runs as you" if reason else None


def environment(trust: bool) -> dict[str, str]:
    """What tells `trusted` in the process of a notebook."""
    return {TRUST_VARIABLE: "1"} if trust else {}


def trusted() -> bool:
    """Whether this process may run ranks without confinement: it was told so, or could not do otherwise at home."""
    return os.environ.get(TRUST_VARIABLE) == "1" or reason_against() is not None
