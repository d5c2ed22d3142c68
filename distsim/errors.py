"""The errors that distsim raises for its users.

Every message says what was asked for, the offending value, the rule it breaks and the cure.
The command line turns `exit_code` into its exit status and prints the message without a traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distsim.trace import Trace

LEAST_ALIKE = 0.75  # by difflib's ratio: a slip of a letter or two is nearer, and most other words are not


class DistsimError(Exception):
    """Base of all errors meant for a user. `exit_code` is the status the command line ends with."""

    exit_code = 1


class InputError(DistsimError, ValueError):
    """Wrong input or a missing permission: nothing was run and nothing was written.

    asked, value, rule, cure: the parts of the message, where `of` made it.

    >>> raise InputError.of("steps", 0, "must be at least 1", "write steps = 50")
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: steps = 0: must be at least 1. Cure: write steps = 50
    """

    exit_code = 2
    asked: str = ""
    value: object = None
    rule: str = ""
    cure: str = ""

    @classmethod
    def of(cls, asked: str, value: object, rule: str, cure: str) -> InputError:
        """The error for `asked` = `value`, which breaks `rule`; `cure` tells what to write instead."""
        error = cls(problem(asked, value, rule, cure))
        error.asked, error.value, error.rule, error.cure = asked, value, rule, cure
        return error

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it: the message, without the lines of code that raised it."""
        return [str(self)]


class NotAvailableYetError(InputError):
    """The scenario asks for something that this version cannot run yet."""


class RunError(DistsimError):
    """A real run failed: the message names the rank and the line it had reached.

    trace: the trace recorded until then, if there is any.
    """

    exit_code = 3
    trace: Trace | None = None


def problem(asked: str, value: object, rule: str, cure: str) -> str:
    """One line: what was asked for, the offending value, the rule, the cure.

    >>> problem("cluster.workers", -1, "must be at least 1", "write workers = 4")
    'cluster.workers = -1: must be at least 1. Cure: write workers = 4'
    """
    return f"{asked} = {shown(value)}: {rule}. Cure: {cure}"


def closest(wrong: str, names: Iterable[str]) -> str | None:
    """The name of which `wrong` is a misspelling; None where none is that near.

    >>> closest("simulat", ["simulate", "sweep"]), closest("--calibration", ["--activation"])
    ('simulate', None)
    """
    from difflib import get_close_matches  # an error needs it, and nothing that goes well

    return next(iter(get_close_matches(wrong, list(names), n=1, cutoff=LEAST_ALIKE)), None)


def shown(value: object) -> str:
    """`value` as a message quotes it: as Python writes it, shortened in the middle to at most 80 characters.

    >>> shown("10"), len(shown("x" * 1000))
    ("'10'", 80)
    """
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python writes
        text = "(a number of thousands of digits)"
    return shortened(text)


def shortened(text: str) -> str:
    """`text`, shortened in the middle to at most 80 characters."""
    return text if len(text) <= 80 else f"{text[:37]}...{text[-40:]}"
