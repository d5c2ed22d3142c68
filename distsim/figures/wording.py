"""How all figures word errors, differences, counts and the unit of time."""

from __future__ import annotations

from collections.abc import Sequence

ROUNDING = 1e-3  # in percent; nobody reads smaller errors
FAR = 1e5  # in percent; nobody reads larger ones
LONG = 1e6  # a number that is not written in full


def above_or_below(predicted: float, actual: float) -> str:
    """The error in percent of `actual` (not 0), and above or below; a rounding error is neither above nor below.

    >>> above_or_below(102.0, 100.0), above_or_below(68.8, 100.0), above_or_below(3.0, 3.0)
    ('2 % above', '31 % below', '0 % off')
    """
    error = 100.0 * (predicted - actual) / actual
    if abs(error) < ROUNDING:
        return "0 % off"
    if error > FAR:
        return f"{predicted / actual:.3g} times as large"
    return f"{two_digits(abs(error))} % {'above' if error > 0 else 'below'}"


def two_digits(percent: float) -> str:
    """A percentage to two digits; a whole number from 10 on.

    >>> two_digits(4.37), two_digits(31.2), two_digits(125.6)
    ('4.4', '31', '126')
    """
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"


def signed(value: float, unit: str) -> str:
    """A difference with its sign, to two or three digits.

    >>> signed(-0.0312, "ms"), signed(12.34, "%"), signed(0.0, "%")
    ('-0.031 ms', '+12.3 %', '0 %')
    """
    if abs(value) >= LONG:
        return f"{value:+.3g} {unit}".strip()
    digits = 1 if abs(value) >= 10.0 else 2 if abs(value) >= 0.1 else 3
    text = f"{abs(value):.{digits}f}"
    text = text.rstrip("0").rstrip(".")
    sign = "" if float(text) == 0.0 else "-" if value < 0 else "+"
    return f"{sign}{text} {unit}".strip()


def counted(count: int, noun: str) -> str:
    """A count with its noun in the singular or plural.

    >>> counted(1, "worker"), counted(2, "micro-batch"), counted(3, "process")
    ('1 worker', '2 micro-batches', '3 processes')
    """
    return f"{count} {noun}{'' if count == 1 else 'es' if noun.endswith(('ch', 'sh', 's')) else 's'}"


def enumerated(words: Sequence[str]) -> str:
    """The words as a sentence lists them.

    >>> enumerated(["one", "two", "three"]), enumerated(["one"])
    ('one, two and three', 'one')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def byte_unit(most_bytes: float) -> tuple[float, str]:
    """The unit of an axis that reaches so far: its bytes, and its name.

    >>> byte_unit(2.5e9), byte_unit(3e4), byte_unit(1.0)
    ((1000000000.0, 'GB'), (1000.0, 'kB'), (1.0, 'B'))
    """
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next((unit for unit in units if most_bytes >= unit[0]), (1.0, "B"))


def time_unit(seconds: float, least_seconds: float = 3.0) -> tuple[float, str]:
    """The units in one second, and the unit's name: seconds from `least_seconds` on, milliseconds below.

    >>> time_unit(0.2), time_unit(3.0)
    ((1000.0, 'ms'), (1.0, 's'))
    """
    return (1e3, "ms") if seconds < least_seconds else (1.0, "s")
