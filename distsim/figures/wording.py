"""How far a prediction is from what it predicted, in words: one wording for all figures."""

from __future__ import annotations

ROUNDING = 1e-6  # percent; what is smaller comes of the arithmetic


def above_or_below(predicted: float, actual: float) -> str:
    """The error in percent of what was `actual`, which is not 0, with its side; a rounding has none.

    >>> above_or_below(102.0, 100.0), above_or_below(68.8, 100.0), above_or_below(3.0, 3.0)
    ('2 % above', '31 % below', '0 % off')
    """
    error = 100.0 * (predicted - actual) / actual
    if abs(error) < ROUNDING:
        return "0 % off"
    return f"{two_digits(abs(error))} % {'above' if error > 0 else 'below'}"


def two_digits(percent: float) -> str:
    """To two digits, and large ones as a whole number.

    >>> two_digits(4.37), two_digits(31.2), two_digits(125.6)
    ('4.4', '31', '126')
    """
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"


def signed(value: float, unit: str) -> str:
    """A difference with its sign, to two or three digits.

    >>> signed(-0.0312, "ms"), signed(12.34, "%"), signed(0.0, "%")
    ('-0.031 ms', '+12.3 %', '0 %')
    """
    digits = 1 if abs(value) >= 10.0 else 2 if abs(value) >= 0.1 else 3
    text = f"{abs(value):.{digits}f}"
    text = text.rstrip("0").rstrip(".")
    sign = "" if float(text) == 0.0 else "-" if value < 0 else "+"
    return f"{sign}{text} {unit}".strip()
