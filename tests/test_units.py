"""Quantities with units: what is read, what is refused, and that writing loses nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distsim.units import SiUnit, UnitError, alike, duration, parse, show, write

UNITS: tuple[SiUnit, ...] = ("second", "byte", "byte/second")

READ = [
    ("10 Gbit/s", "byte/second", 1.25e9),
    ("100 Mbit/s", "byte/second", 1.25e7),
    ("8 kbit/s", "byte/second", 1e3),
    ("10 Gbps", "byte/second", 1.25e9),
    ("300 GB/s", "byte/second", 3e11),
    ("1 GiB/s", "byte/second", 2.0**30),
    ("50 us", "second", 5e-5),
    ("50 µs", "second", 5e-5),
    ("1.4 ms", "second", 1.4e-3),
    ("5ms", "second", 5e-3),
    ("2 min", "second", 120.0),
    ("1.5 h", "second", 5400.0),
    ("0 s", "second", 0.0),
    ("1e-3 s", "second", 1e-3),
    ("-1 s", "second", -1.0),
    ("+1 s", "second", 1.0),
    (" 1 s ", "second", 1.0),
    (".5 s", "second", 0.5),
    ("1 Gbit / s", "byte/second", 1.25e8),
    ("1e-400 s", "second", 0.0),
    ("4 MiB", "byte", 4.0 * 2**20),
    ("25 MB", "byte", 25e6),
    ("8 bit", "byte", 1.0),
    ("1 Mbit", "byte", 125e3),
    ("1 d", "second", 86400.0),
    ("1 KiB", "byte", 1024.0),
]

REFUSED = [
    ("5", "second", "has no unit"),
    (5, "second", "has no unit"),
    (0.5, "byte", "has no unit"),
    ("", "second", "is not a number with a unit"),
    (True, "second", "is not a quantity"),
    (None, "second", "is not a quantity"),
    (["1 s"], "second", "is not a quantity"),
    ("1 s", "byte", "another kind"),
    ("4 MiB", "byte/second", "another kind"),
    ("10 Gbit/s", "byte", "another kind"),
    ("10 Gbit/s", "second", "another kind"),
    ("3 km", "second", "does not know"),
    ("5 m", "second", "does not know"),
    ("1,5 s", "second", "comma"),
    ("1,000 MB", "byte", "comma"),
    ("nan s", "second", "not finite"),
    ("inf s", "second", "not finite"),
    ("-inf B", "byte", "not finite"),
    ("1e400 s", "second", "not finite"),
    ("s", "second", "has no number"),
    ("5 s; 3", "second", "is not a number with a unit"),
    ("5 s # five", "second", "is not a number with a unit"),
    ("[5] s", "second", "is not a number with a unit"),
    ("five seconds", "second", "is not a number with a unit"),
    ("1/0 s", "second", "is not a number with a unit"),
    ("9**9**9**9 s", "second", "is not a number with a unit"),
    ("2*3 Gbit/s", "byte/second", "is not a number with a unit"),
    ("1 Gbit/s + 2 Gbit/s", "byte/second", "is not a number with a unit"),
    ("1 Gbit/s\0", "byte/second", "is not a number with a unit"),
    ("1 s\n", "second", "is not a number with a unit"),
    ("(1) s", "second", "is not a number with a unit"),
    ("1 s**1", "second", "is not a number with a unit"),
    ("1 B s/s", "byte", "is not a number with a unit"),
    ("3/2 s", "second", "is not a number with a unit"),
    ("5 1/s", "byte/second", "is not a number with a unit"),
    ("1_000 s", "second", "is not a number with a unit"),
    ("٣ s", "second", "is not a number with a unit"),
    ("1e99999999999999999999 s", "second", "is not a number with a unit"),
    ("1e999999999 s", "second", "not finite"),
    ("Infinity s", "second", "not finite"),
    ("1 ms ms", "second", "is not a number with a unit"),
    ("1 " + "s" * 300, "second", "is too long"),
    ("9" * 300 + " s", "second", "is too long"),
]


@pytest.mark.parametrize(("text", "unit", "value"), READ)
def test_parse_gives_the_nearest_float(text: str, unit: SiUnit, value: float) -> None:
    assert parse(text, unit) == value


@pytest.mark.parametrize(("text", "unit", "reason"), REFUSED)
def test_parse_refuses(text: object, unit: SiUnit, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text, unit)


# Written here anew: every name that is read, and nothing else is.
NAMES: dict[SiUnit, list[str]] = {
    "second": ["ns", "us", "µs", "μs", "ms", "s", "min", "h", "d"],
    "byte": ["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "bit", "kbit", "Mbit", "Gbit", "Tbit"],
    "byte/second": [
        "B/s", "kB/s", "MB/s", "GB/s", "TB/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s",
        "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "bps", "kbps", "Mbps", "Gbps", "Tbps",
    ],
}  # fmt: skip
PREFIXES = ["", *"fpnuµμmcdhkKMGTPE", "da", *(f"{letter}{i}" for letter in "kKmMgGtTpP" for i in "iI")]
TIMES = ["s", "S", "sec", "second", "seconds", "m", "min", "Min", "h", "H", "hour", "d", "D", "day"]
SIZES = ["b", "B", "bit", "Bit", "BIT", "bits", "byte", "Byte", "bytes", "bps", "Bps", "BPS", "octet"]
ENDINGS = ["", "/s", "/S", "/sec", "/min", "/ms", "ps", "/s/s"]
SPACE = sorted({f"{prefix}{base}{ending}" for prefix in PREFIXES for base in TIMES + SIZES for ending in ENDINGS})


@pytest.mark.parametrize("unit", UNITS)
def test_of_all_prefixes_units_and_cases_only_the_list_is_read(unit: SiUnit) -> None:
    read, without_cure, others = [], [], []
    for name in SPACE + NAMES[unit]:
        try:
            parse(f"2 {name}", unit)
            read.append(name)
        except UnitError as error:
            meant = [allowed for allowed in NAMES[unit] if allowed.lower() == name.lower()]
            if meant and not any(f'"2 {allowed}"' in error.cure for allowed in meant):
                without_cure.append((name, error.cure))
        except ValueError as error:  # "another kind", or no unit at all
            others.append(str(error))
    assert set(read) == set(NAMES[unit])
    assert without_cure == []
    assert all("another kind" in text or "is not a number" in text for text in others)


@pytest.mark.parametrize(
    ("text", "unit", "meant"),
    [
        ("2 mb", "byte", 'write "2 MB" for bytes or "2 Mbit" for bits'),
        ("2 Mb", "byte", 'write "2 MB" for bytes or "2 Mbit" for bits'),
        ("2 KB", "byte", 'write "2 kB"'),
        ("2 mB", "byte", 'write "2 MB"'),
        ("2 mib", "byte", 'write "2 MiB"'),
        ("2 bytes", "byte", 'write "2 B"'),
        ("40 Ms", "second", 'write "40 ms"'),
        ("40 MS", "second", 'write "40 ms"'),
        ("3 seconds", "second", 'write "3 s"'),
        ("5 m", "second", 'write "5 min"'),
        ("10 Gb/s", "byte/second", 'write "10 GB/s" for bytes or "10 Gbit/s" for bits'),
        ("10 gbit/s", "byte/second", 'write "10 Gbit/s"'),
        ("10 gbps", "byte/second", 'write "10 Gbps"'),
        ("10 GBps", "byte/second", 'write "10 GB/s" for bytes or "10 Gbps" for bits'),
        ("3 furlong", "second", 'write a number and one of s, ms, us, ns, µs, μs, min, h, d, such as "50 ms"'),
    ],
)
def test_a_refused_unit_tells_what_was_probably_meant(text: str, unit: SiUnit, meant: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, unit)
    assert caught.value.cure == meant


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.25e9, "byte/second", "10 Gbit/s"),
        (1e9, "byte/second", "8 Gbit/s"),
        (5e-5, "second", "50 us"),
        (0.5, "second", "500 ms"),
        (120.0, "second", "120 s"),
        (0.0, "byte", "0 B"),
        (4.0 * 2**20, "byte", "4 MiB"),
        (1e6, "byte", "1 MB"),
        (1 / 3, "byte", "0.3333333333333333 B"),
    ],
)
def test_write_picks_the_unit_a_person_would(value: float, unit: SiUnit, text: str) -> None:
    assert write(value, unit) == text


@pytest.mark.parametrize("unit", UNITS)
@given(value=st.floats(min_value=0.0, allow_nan=False, allow_infinity=False))
@example(value=5e-324)
@example(value=1.7976931348623157e308)
@example(value=0.1 + 0.2)
@example(value=1e-9)
def test_what_is_written_reads_back_to_the_same_float(unit: SiUnit, value: float) -> None:
    back = parse(write(value, unit), unit)
    assert back == value
    assert math.copysign(1.0, back) == math.copysign(1.0, value)


@pytest.mark.parametrize("unit", UNITS)
@given(text=st.text(max_size=20) | st.text(alphabet="0123456789.eE+-*/ ()%nanifsmuGMkKbitB", max_size=16))
def test_any_text_is_read_or_refused_but_never_breaks(unit: SiUnit, text: str) -> None:
    try:
        value = parse(text, unit)
    except ValueError:
        return
    assert math.isfinite(value)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_shown_all_the_same(unit: SiUnit, value: float) -> None:
    assert show(value, unit).split() == [str(value), {"second": "s", "byte": "B", "byte/second": "B/s"}[unit]]


def test_durations_have_a_unit_near_their_size_and_no_exponent() -> None:
    told = {59.0: "59 s", 60.0: "1 min", 7200.0: "120 min", 18000.0: "300 min", 18060.0: "5.02 h", 864000.0: "10 days"}
    assert {seconds: duration(seconds) for seconds in told} == told
    assert all("e" not in duration(10.0**power) for power in range(-2, 13))


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([], []),
        ([0.0, 0.0], ["0.00 s", "0.00 s"]),
        ([0.0, 0.0735], ["0.0 ms", "73.5 ms"]),
        ([5e-4, 3.0], ["0.0005 s", "3.0000 s"]),
        ([1e-9, 3.0], ["0.0000 s", "3.0000 s"]),
        ([-0.0501, 0.102], ["-50.1 ms", "102.0 ms"]),
        ([float("inf"), 1.0], ["inf s", "1 s"]),
    ],
)
def test_values_side_by_side_have_one_prefix_and_as_many_decimals(values: list[float], texts: list[str]) -> None:
    assert alike(values, "second") == texts
