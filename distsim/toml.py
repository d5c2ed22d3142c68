"""Reads TOML. An error shows the wrong line and says what to write there instead."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from distsim.errors import InputError

PLACE = re.compile(r"^(?P<rule>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")


def read(text: str, source: str) -> dict[str, Any]:
    """The table in `text`. Raises InputError, which names `source`, where `text` is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(text, source, str(error)) from None
    except (RecursionError, ValueError) as error:  # tables a thousand deep, numbers of thousands of digits
        raise InputError(f"{source} cannot be read as TOML ({error}). Cure: write plain tables and numbers") from None


def _refused(text: str, source: str, said: str) -> InputError:
    place = PLACE.match(said)
    rule = (place["rule"] if place else said).rstrip(".")
    lines = text.splitlines() or [""]
    number = min(int(place["line"]), len(lines)) if place and place["line"] else len(lines)
    column = f", column {place['column']}" if place and place["column"] else ""
    line = lines[number - 1]
    rule = f"is not TOML ({rule[0].lower()}{rule[1:]}{column})"
    return InputError.of(f"{source}, line {number}", line, rule, _cure(rule, line))


def _cure(rule: str, line: str) -> str:
    if "overwrite" in rule or "twice" in rule or "mutate" in rule:
        return "write each key and each table once"
    if "unclosed" in rule:
        return "close the bracket on that line, or on the one before"
    key, equals, value = (part.strip() for part in line.partition("="))
    if line.lstrip().startswith("{"):
        return "write keys such as steps = 50 and tables such as [cluster], not JSON"
    if key.startswith("["):
        return "write a table such as [cluster] on a line of its own"
    if not equals:
        return "write key = value, such as steps = 50"
    if not value:
        return f"write a value, such as {key} = 50"
    if value.lstrip("+-").isdigit():
        return "write the number without a zero in front"
    if value[0] not in "\"'[{":
        return f'put text and quantities in quotes, such as {key} = "{value.partition("#")[0].strip()}"'
    return "close every quote and bracket on that line, and separate values by commas"
