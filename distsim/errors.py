"""What distsim raises at its public doors.

Every message says what was asked for, the offending value, the rule it breaks and the cure.
The command line turns `exit_code` into its exit status and prints the message without a traceback.
"""

from __future__ import annotations


class DistsimError(Exception):
    """Base of all errors meant for a user. `exit_code` is the status the command line ends with."""

    exit_code = 1


class InputError(DistsimError, ValueError):
    """Bad input or a missing right: nothing was run and nothing was written.

    >>> raise InputError.of("steps", 0, "must be at least 1", "write steps = 50")
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: steps = 0: must be at least 1. Cure: write steps = 50
    """

    exit_code = 2

    @classmethod
    def of(cls, asked: str, value: object, rule: str, cure: str) -> InputError:
        """The error for `asked` = `value`, which breaks `rule`; `cure` tells what to write instead."""
        return cls(problem(asked, value, rule, cure))


class NotAvailableYetError(InputError):
    """The scenario names something of the contract that this version cannot run."""


class RunError(DistsimError):
    """A real run failed: the message names the rank and where it stood."""

    exit_code = 3


def problem(asked: str, value: object, rule: str, cure: str) -> str:
    """One line: what was asked for, the offending value, the rule, the cure.

    >>> problem("cluster.workers", -1, "must be at least 1", "write workers = 4")
    'cluster.workers = -1: must be at least 1. Cure: write workers = 4'
    """
    return f"{asked} = {shown(value)}: {rule}. Cure: {cure}"


def shown(value: object) -> str:
    """How a message quotes a value: as Python writes it, at most 80 characters, its beginning and its end.

    >>> shown("10"), len(shown("x" * 1000))
    ("'10'", 80)
    """
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        text = "(a number of thousands of digits)"
    return text if len(text) <= 80 else f"{text[:37]}...{text[-40:]}"
