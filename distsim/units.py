"""Quantities at the edge: "10 Gbit/s", "50 us", "25 MB" in files, SI floats inside.

A quantity is one number and one unit of a short list. Case counts, since "2 mb" may mean megabits, megabytes or, by the
letter, millibits: what is not on the list is refused, with what was probably meant. Values are computed in decimals, so
"50 us" is the float nearest to 0.00005 and every value can be written back without loss.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal, DecimalException
from functools import lru_cache
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, PlainSerializer

SiUnit = Literal["second", "byte", "byte/second"]

BIT = Decimal("0.125")
BYTES = {
    "B": Decimal(1), "kB": Decimal(10**3), "MB": Decimal(10**6), "GB": Decimal(10**9), "TB": Decimal(10**12),
    "KiB": Decimal(2**10), "MiB": Decimal(2**20), "GiB": Decimal(2**30), "TiB": Decimal(2**40),
    "bit": BIT, "kbit": BIT * 10**3, "Mbit": BIT * 10**6, "Gbit": BIT * 10**9, "Tbit": BIT * 10**12,
}  # fmt: skip
UNITS: dict[SiUnit, dict[str, Decimal]] = {
    "second": {
        "s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9"),
        "µs": Decimal("1e-6"), "μs": Decimal("1e-6"),  # the micro sign, and the Greek letter
        "min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400),
    },
    "byte": BYTES,
    "byte/second": {f"{name}/s": size for name, size in BYTES.items()}
    | {f"{prefix}bps": BYTES[f"{prefix}bit"] for prefix in ("", "k", "M", "G", "T")},
}  # fmt: skip
# What people write for a unit of the list, beside another case. In lower case; "b" is left out, see `_meant`.
ALIASES = {
    "sec": "s", "second": "s", "millisecond": "ms", "msec": "ms", "microsecond": "us", "usec": "us", "nanosecond": "ns",
    "nsec": "ns", "m": "min", "minute": "min", "hr": "h", "hour": "h", "day": "d", "byte": "B", "kilobyte": "kB",
    "megabyte": "MB", "gigabyte": "GB", "kibibyte": "KiB", "mebibyte": "MiB", "gibibyte": "GiB",
}  # fmt: skip

LONGEST = 200  # characters of a quantity

# No cluster has values outside these bounds, other than 0.
BOUNDS: dict[SiUnit, tuple[float, float]] = {"second": (1e-12, 1e12), "byte": (1.0, 1e15), "byte/second": (1e-3, 1e18)}
EXAMPLES: dict[SiUnit, str] = {"second": '"50 ms"', "byte": '"4 MiB"', "byte/second": '"10 Gbit/s"'}

# Units in which a value may be written. Of the units that lose nothing, the one with the fewest digits is taken;
# a number from 1 to 999 is preferred to 0.5 or 5000.
SPELLINGS: dict[SiUnit, tuple[tuple[str, Decimal], ...]] = {
    "second": (("s", Decimal(1)), ("ms", Decimal("1e-3")), ("us", Decimal("1e-6")), ("ns", Decimal("1e-9"))),
    "byte": (
        ("GiB", Decimal(2**30)), ("MiB", Decimal(2**20)), ("KiB", Decimal(2**10)),
        ("GB", Decimal(10**9)), ("MB", Decimal(10**6)), ("kB", Decimal(10**3)), ("B", Decimal(1)),
    ),
    "byte/second": (
        ("Gbit/s", Decimal(125_000_000)), ("Mbit/s", Decimal(125_000)), ("kbit/s", Decimal(125)),
        ("GB/s", Decimal(10**9)), ("MB/s", Decimal(10**6)), ("kB/s", Decimal(10**3)), ("B/s", Decimal(1)),
    ),
}  # fmt: skip
SI_SPELLING: dict[SiUnit, int] = {"second": 0, "byte": -1, "byte/second": -1}


class UnitError(ValueError):
    """A unit that is not on the list. cure: what was probably meant."""

    def __init__(self, rule: str, cure: str) -> None:
        super().__init__(rule)
        self.cure = cure


def parse(text: object, unit: SiUnit) -> float:
    """The value of `text` in `unit`, rounded once.

    Raises ValueError (caught by the scenario's validation, which adds the name of the field) where
    `text` is not a string with a number and a unit of the list, or is not finite. `cure` tells what to write instead.

    >>> parse("10 Gbit/s", "byte/second")
    1250000000.0
    >>> parse("50 us", "second")
    5e-05
    >>> parse("5", "byte")
    Traceback (most recent call last):
    ...
    ValueError: has no unit
    """
    if isinstance(text, bool) or not isinstance(text, str):
        number = isinstance(text, (int, float)) and not isinstance(text, bool)
        raise ValueError("has no unit" if number else "is not a quantity")
    return _parse(text, unit)


@lru_cache(maxsize=4096)
def _parse(text: str, unit: SiUnit) -> float:
    if len(text) > LONGEST:
        raise ValueError("is too long for a number with a unit")
    if "," in text:
        raise ValueError("has a comma, which could mean a decimal point or thousands")
    number, name = _split(text.strip(" "))
    if name.partition(" ")[0].lower() in ("inf", "infinity", "nan"):
        raise ValueError("is not finite")
    exact = _number(number) if number or not name else None
    if not name:
        raise ValueError("has no unit")
    size = UNITS[unit].get(name)
    if size is None:
        raise _refused(number.strip(" "), name, unit)
    if exact is None:
        raise ValueError("has no number")
    try:
        value = float(exact * size)
    except DecimalException:  # an exponent of many digits
        value = math.inf
    if not math.isfinite(value):
        raise ValueError("is not finite")
    return value


def _split(text: str) -> tuple[str, str]:
    """The number, and the letters and slashes behind it, without spaces around a slash."""
    end = len(text)
    while end and (text[end - 1].isalpha() or text[end - 1] in "/ "):
        end -= 1
    return text[:end], re.sub(" */ *", "/", text[end:].strip(" "))


def _number(text: str) -> Decimal:
    if not text.isascii() or "_" in text:  # Decimal would accept these
        raise ValueError("is not a number with a unit")
    try:
        return Decimal(text)
    except DecimalException:
        raise ValueError("is not a number with a unit") from None


def _refused(number: str, name: str, unit: SiUnit) -> ValueError:
    """The error about a unit that is not one of those for `unit`."""
    if not all(part.isalpha() for part in name.split("/", maxsplit=1)):
        return ValueError("is not a number with a unit")
    if any(name in units for units in UNITS.values()):
        return ValueError(f"has a unit of another kind than {unit}")
    rule = f"has a unit that distsim does not know, {name!r}"
    number = number or "1"
    meant = [f'"{number} {spelling}"' for spelling in _meant(name, unit)]
    if not meant:
        return UnitError(rule, f"write a number and one of {', '.join(UNITS[unit])}, such as {EXAMPLES[unit]}")
    if unit == "second" or len(meant) == 1:
        return UnitError(rule, f"write {' or '.join(meant)}")
    return UnitError(rule, f"write {meant[0]} for bytes or {meant[1]} for bits")


def _meant(name: str, unit: SiUnit) -> list[str]:
    """The units that `name` was probably meant to be, the likeliest first.

    >>> [_meant(*one) for one in (("mb", "byte"), ("Ms", "second"), ("GBps", "byte/second"), ("furlong", "byte"))]
    [['MB', 'Mbit'], ['ms'], ['GB/s', 'Gbps'], []]
    """
    stem, ending = name.partition("/")[0], "/s" if unit == "byte/second" else ""
    bps = unit == "byte/second" and "/" not in name and stem.lower().endswith("ps")
    stem = stem[:-2] if bps else stem
    spellings = {spelling.lower(): spelling for spelling in UNITS["second" if unit == "second" else "byte"]}
    lower = stem.lower() if stem.lower() in spellings else stem.lower().removesuffix("s")
    close = spellings.get(lower) or ALIASES.get(lower)
    if close is None:
        return []
    found = [f"{close}{ending}"]
    if unit != "second" and lower.endswith("b") and not lower.endswith("ib"):  # bits or bytes?
        bits = f"{close[:-1]}bps" if bps else f"{close[:-1]}bit{ending}"
        if bps and not stem.endswith("B"):
            found = [bits]
        elif bps or not stem.endswith("B"):
            found.append(bits)
    return [spelling for spelling in found if spelling in UNITS[unit]]


def cure(error: ValueError, example: str) -> str:
    """What to write in place of a refused quantity. example: where nothing better is known."""
    return error.cure if isinstance(error, UnitError) else example


@lru_cache(maxsize=4096)
def write(value: float, unit: SiUnit) -> str:
    """`value` (in `unit`) as a short text that `parse` reads back to the same float.

    >>> write(1.25e9, "byte/second"), write(5e-05, "second"), write(4194304.0, "byte")
    ('10 Gbit/s', '50 us', '4 MiB')
    """
    exact = Decimal(repr(float(value)))
    candidates = []
    for order, (name, size) in enumerate(SPELLINGS[unit]):
        number = (exact / size).normalize()
        if name.endswith("iB") and not 1 <= number < 1024:  # 7500000 KiB are better told as 7.68 GB
            continue
        text = f"{number:f} {name}"
        if len(text) <= 40 and _parse(text, unit) == value:
            handy = 1 <= number < 1000
            candidates.append((len(number.as_tuple().digits), not handy, order if handy else len(text), text))
    return min(candidates)[-1] if candidates else f"{value!r} {SPELLINGS[unit][SI_SPELLING[unit]][0]}"


def show(value: float, unit: SiUnit, digits: int = 3) -> str:
    """`value` (in `unit`) rounded for a person to read.

    >>> show(0.0711106934, "second"), show(314572800.0, "byte"), show(-0.0, "second"), show(7.68e9, "byte")
    ('71.1 ms', '315 MB', '0 s', '7.68 GB')
    """
    if not math.isfinite(value):
        return f"{value} {SPELLINGS[unit][SI_SPELLING[unit]][0]}"
    return write(float(f"{value:z.{digits}g}"), unit)


def alike(values: Sequence[float], unit: SiUnit, digits: int = 3) -> list[str]:
    """Values of one quantity for a person to compare: with one prefix, and as many decimals as the smallest needs.

    >>> alike([0.9967, 1.0049], "second"), alike([0.0735, 0.1022], "second"), alike([0.25], "second")
    (['0.997 s', '1.005 s'], ['73.5 ms', '102.2 ms'], ['250 ms'])
    """
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return [show(value, unit, digits) for value in values]
    name = show(max(map(abs, values)), unit, digits).rpartition(" ")[2]
    numbers = [value / float(dict(SPELLINGS[unit])[name]) for value in values]
    smallest = min((abs(number) for number in numbers if number), default=1.0)
    decimals = min(max(digits - 1 - math.floor(math.log10(smallest)), 0), digits + 1)
    return [f"{number:z.{decimals}f} {name}" for number in numbers]


def rate(bytes_per_second: float) -> str:
    """A link's bandwidth for a person to read, always in bits, so that bandwidths can be compared.

    >>> [rate(bandwidth) for bandwidth in (1.25e9, 348e6, 2.5e6)]
    ['10 Gbit/s', '2.78 Gbit/s', '20 Mbit/s']
    """
    bits = 8 * bytes_per_second
    if not math.isfinite(bits):
        return show(bits, "byte/second")
    size, name = next((row for row in ((1e9, "Gbit/s"), (1e6, "Mbit/s")) if bits >= row[0]), (1e3, "kbit/s"))
    return f"{float(f'{bits / size:.3g}'):,.10g} {name}"


def duration(seconds: float) -> str:
    """`seconds` for a sentence: as `show` below a minute, then in minutes, hours and days, to three digits.

    >>> [duration(seconds) for seconds in (20.0, 1236.0, 16 * 3600.0, 864000.0, 1e11)]
    ['20 s', '20.6 min', '16 h', '10 days', '1,160,000 days']
    """
    for most, size, name in ((60.0, 0.0, ""), (18001.0, 60.0, "min"), (172800.0, 3600.0, "h")):
        if seconds < most:
            return f"{seconds / size:.3g} {name}" if size else show(seconds, "second")
    return f"{float(f'{seconds / 86400.0:.3g}'):,.10g} days"


def _quantity(unit: SiUnit, *, zero: bool) -> tuple[BeforeValidator, PlainSerializer]:
    def validate(text: object) -> float:
        example = f"write a number and a unit in quotes, such as {EXAMPLES[unit]}"
        try:
            value = parse(text, unit)
        except ValueError as error:
            raise ValueError(f"{error}. Cure: {cure(error, example)}") from None
        if value < 0 or (value == 0 and not zero):
            raise ValueError(f"must be {'at least 0' if zero else 'above 0'}. Cure: {example}")
        least, most = BOUNDS[unit]
        if value > most or (value < least and not zero):
            wrong = f"at most {write(most, unit)}" if value > most else f"at least {write(least, unit)}"
            raise ValueError(f"must be {wrong}. Cure: {example}")
        return value

    return BeforeValidator(validate), PlainSerializer(lambda value: write(value, unit))


_SECONDS, _POSITIVE_SECONDS = _quantity("second", zero=True), _quantity("second", zero=False)
_BYTES, _POSITIVE_BYTES = _quantity("byte", zero=True), _quantity("byte", zero=False)
_RATE = _quantity("byte/second", zero=False)

# Field types: text with a unit in the file, an SI float in the object. Durations and sizes may be 0, a bandwidth not.
Seconds = Annotated[float, *_SECONDS]
PositiveSeconds = Annotated[float, *_POSITIVE_SECONDS]
Bytes = Annotated[float, *_BYTES]
PositiveBytes = Annotated[float, *_POSITIVE_BYTES]
BytesPerSecond = Annotated[float, *_RATE]

assert set(get_args(SiUnit)) == set(EXAMPLES) == set(SPELLINGS) == set(UNITS), "every unit has all of them"
__all__ = [
    "Bytes",
    "BytesPerSecond",
    "PositiveBytes",
    "PositiveSeconds",
    "Seconds",
    "cure",
    "duration",
    "parse",
    "show",
    "write",
]
