"""The reference of scenario keys lists what the models take: each key with its value and default, and no other."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from pydantic.fields import FieldInfo

import distsim
from distsim.compute import SPREADS
from distsim.distributions import DISTRIBUTIONS
from distsim.policies.table import POLICIES, _validator
from distsim.profile import Profile
from distsim.scenario import Scenario
from distsim.units import SiUnit, write
from distsim.validated_table import ValidatedTable

REFERENCE = Path(distsim.__file__).parent / "examples" / "KEYS.md"
QUANTITIES: dict[str, tuple[str, SiUnit]] = {
    "_bytes_per_second": ("bandwidth", "byte/second"), "_seconds": ("time", "second"), "_bytes": ("size", "byte"),
}  # fmt: skip
WORDS = {int: "whole number", float: "number", bool: "true false", str: "text"}
Row = tuple[str, str, str]  # key, value, default


def expected() -> list[Row]:
    """Every key of a scenario's file, in the order of the models."""
    rows = list(of_model(Scenario, ""))
    place = next(number for number, row in enumerate(rows) if row[0] == "communication.kind")
    own = [row for kind in POLICIES for row in of_model(_validator(kind), f"{kind}.")]
    return [*rows[:place], ("policy.kind", " ".join(POLICIES), "required"), *own, *rows[place:]]


def of_model(model: type[ValidatedTable], before: str) -> Iterator[Row]:
    for name, field in model.model_fields.items():
        if name != "policy":
            yield from of_field(name, f"{before}{field.alias or name}", field)


def of_field(name: str, key: str, field: FieldInfo) -> Iterator[Row]:
    kind = without_none(field.annotation)
    if get_origin(kind) is dict:
        kind, key = without_none(get_args(kind)[1]), f"{key}.N"
    if isinstance(kind, type) and issubclass(kind, ValidatedTable):
        yield from of_model(kind, f"{key}.")
        return
    for suffix, (word, unit) in QUANTITIES.items():
        if name.endswith((suffix, suffix[1:])):
            yield key, word, default(field, unit)
            return
    if kind is Profile:  # a file gives its path
        kind = str
    if get_origin(kind) is tuple:
        yield key, f"list of {WORDS[without_none(get_args(kind)[0])]}s", default(field)
        return
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    yield key, " ".join(choices) or WORDS[kind], default(field)


def without_none(annotation: Any) -> Any:
    while get_origin(annotation) in (Union, types.UnionType) or hasattr(annotation, "__metadata__"):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def default(field: FieldInfo, unit: SiUnit | None = None) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or isinstance(value, dict):
        return ""
    if unit or isinstance(value, str):
        return write(value, unit) if unit else value
    return json.dumps(round(value, 3) if isinstance(value, float) else value)


def written() -> Iterator[tuple[str, str, str, str]]:
    """The rows of the reference's tables: key as in `expected`, value, default, meaning."""
    table = ""
    for line in REFERENCE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            table = "".join(f"{name}." for name in re.findall(r"`\[(\w+)\]`", line))
        elif line.startswith("| `"):
            key, value, default, meaning = (cell.strip() for cell in line.strip("|").split("|"))
            name, kind = re.fullmatch(r"`(.+?)`(?: \((\w+)\))?", key).groups()  # type: ignore[union-attr] # or fail
            yield f"{kind}.{name}" if kind else f"{table}{name}", value, default, meaning


def test_every_key_stands_there_with_its_value_and_default() -> None:
    assert [row[:3] for row in written()] == expected()


@pytest.mark.parametrize("key", SPREADS)
def test_the_keys_of_a_spread_name_the_distributions_that_take_them(key: str) -> None:
    (meaning,) = (meaning for name, _, _, meaning in written() if name == f"compute.{key}")
    assert [word for word in re.findall(r"\w+", meaning) if word in DISTRIBUTIONS] == [
        name for name, entry in DISTRIBUTIONS.items() if key in entry.keys
    ]


def test_every_key_has_a_meaning_and_no_line_is_long() -> None:
    assert [key for *key, meaning in written() if not meaning] == []
    lists = (" ".join(POLICIES), " ".join(DISTRIBUTIONS))  # a line that names all of these may be longer
    lines = REFERENCE.read_text("utf-8").splitlines()
    long = [line for line in lines if len(line) > 120 and not any(names in line for names in lists)]
    assert long == [], "at most 120 characters"


def test_the_readme_leads_there() -> None:
    readme = REFERENCE.parents[2] / "README.md"
    if not readme.exists():
        pytest.skip("an installed package has no README beside it")
    assert "distsim/examples/KEYS.md" in readme.read_text("utf-8")
