"""Messages for the author of a scenario, made from the errors that pydantic finds."""

from __future__ import annotations

import json
import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from distsim.errors import InputError, closest, problem, shown


def explain(error: ValidationError, model: type[BaseModel], source: str) -> InputError:
    """One `InputError` that lists all errors that pydantic found in `source`, one in each line."""
    lines = [_line(finding, model) for finding in error.errors()]
    head = f"{source}: " if len(lines) == 1 else f"{source} has {len(lines)} problems:\n  "
    return InputError(head + "\n  ".join(lines))


def findings(error: ValidationError) -> str:
    """The first few errors that pydantic found in a file that a program wrote, without cures."""
    found = error.errors()
    lines = []
    for finding in found[:3]:
        where = ".".join(map(str, finding["loc"])) or "what it holds"
        if finding["type"] == "missing":
            lines.append(f"{where} is missing")
        else:
            lines.append(f"{where} = {shown(finding['input'])} {_rule_and_cure(finding)[0]}")
    return "; ".join(lines) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _line(finding: Any, model: type[BaseModel]) -> str:
    path = [str(part) for part in finding["loc"] if part != "[key]"]
    where = ".".join(path)
    value = finding["input"]
    kind = finding["type"]
    if kind == "value_error":
        text = str(finding["ctx"]["error"])
        if isinstance(value, (dict, BaseModel)):  # the message about a whole table quotes the wrong key itself
            return text if not where or text.startswith(f"{where}.") else f"[{where}] {text}"
        return f"{where} = {shown(value)} {text}"
    if kind == "extra_forbidden":
        table = f"the table [{'.'.join(path[:-1])}]" if path[:-1] else "the top level"
        places = [] if path[:-1] else _places(model, where)
        return unknown_key(where, value, table, list(_fields(model, path[:-1])), places)
    if kind == "missing":
        return missing_key(where, _fields(model, path[:-1])[path[-1]])
    rule, cure = _rule_and_cure(finding)
    return problem(where or "what should be a table", value, rule, cure)


def _rule_and_cure(finding: Any) -> tuple[str, str]:
    context = finding.get("ctx", {})
    match finding["type"]:
        case "greater_than_equal":
            return f"must be at least {context['ge']}", f"write {context['ge']} or more"
        case "greater_than":
            return f"must be above {context['gt']}", f"write a number above {context['gt']}"
        case "less_than_equal":
            return f"must be at most {context['le']}", f"write {context['le']} or less"
        case "less_than":
            return f"must be below {context['lt']}", f"write a number below {context['lt']}"
        case "literal_error":
            return f"must be {context['expected']}", "take one of these"
        case "int_type" | "int_parsing" | "int_from_float":
            return "must be a whole number", "write one such as 4, without quotes and without a point"
        case "float_type":
            return "must be a number", "write one such as 0.3, without quotes"
        case "finite_number":
            return "must be a finite number", "write one such as 0.3"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters", "shorten it"
        case "bool_type":
            return "must be true or false", "write one of the two, without quotes"
        case "string_type":
            return "must be a text", "put it in quotes"
        case "list_type" | "tuple_type":
            return "must be a list", "write one such as [3, 5]"
        case "model_type" | "dict_type":
            where = ".".join(str(part) for part in finding["loc"])
            if not where:
                return "must be a table", "give one with steps, cluster and the others"
            return (
                "must be a table",
                f"write [{where}] on a line of its own and its keys below; in Python, a dictionary",
            )
    text = str(finding["msg"])
    return text[0].lower() + text[1:], "give it such a value"


def unknown_key(key: str, value: object, table: str, known: list[str], places: Sequence[str] = ()) -> str:
    """The message about a key that `table` does not have. The cure names the closest known key.

    places: keys of other tables that have this name, such as policy.backups. They come first.
    """
    close = " or ".join(places) or closest(key.rpartition(".")[2], known)
    cure = f"write {close}" if close else f"remove it; the keys are {', '.join(known) or 'none'}"
    return problem(key, value, f"is not a key of {table}", cure)


def missing_key(key: str, field: FieldInfo) -> str:
    """The message about a missing key or table. The cure is the example of `field`, as a file spells it."""
    table, _, name = key.rpartition(".")
    example = field.examples[0] if field.examples else "..."
    if isinstance(example, dict):
        keys = ", ".join(f"{inner} = {json.dumps(value)}" for inner, value in example.items())
        return f"{key} is missing. Cure: write [{key}] on a line of its own, and below it such as {keys}"
    place = f"in [{table}]" if table else "above the tables"
    return f"{key} is missing. Cure: write such as {name} = {json.dumps(example)} {place}"


def _fields(model: Any, path: list[str]) -> dict[str, FieldInfo]:
    """The keys that a table of the scenario may have, as a file spells them, with their fields."""
    for part in path:
        if get_origin(model) is dict:  # keys chosen by the author, such as the ranks in cluster.nic
            model = _model_in(get_args(model)[1])
            continue
        field = _of_model(model).get(part)
        model = _model_in(field.annotation) if field else None
    return _of_model(model)


def _places(model: type[BaseModel], name: str) -> list[str]:
    """The keys with this name in the tables of the scenario; a table with kinds has the keys of all kinds."""
    tables = {table: _model_in(field.annotation) for table, field in _of_model(model).items()}
    return [
        f"{table}.{name}" for table, inner in tables.items() if name in _of_model(inner) or name in _of_kinds(inner)
    ]


def _of_kinds(kind: Any) -> set[str]:
    """The keys of a dataclass and of all classes below it, as a file spells them."""
    if not is_dataclass(kind):
        return set()
    hints = get_type_hints(kind, include_extras=True)
    below: list[Any] = type.__subclasses__(kind)  # type: ignore[arg-type] # it is a class
    return {_alias(hints[field.name]) or field.name for field in fields(kind)}.union(*map(_of_kinds, below))


def _alias(hint: Any) -> str | None:
    """The name of a key in a file, where its type names it."""
    return next((found.alias for found in getattr(hint, "__metadata__", ()) if isinstance(found, FieldInfo)), None)


def _of_model(model: Any) -> dict[str, FieldInfo]:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return {}
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next((_model_in(part) for part in get_args(annotation) if part is not type(None)), None)
    return annotation
