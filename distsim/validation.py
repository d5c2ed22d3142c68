"""Turns pydantic's findings about a scenario into messages for its author."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from distsim.errors import InputError, problem, shown


def explain(error: ValidationError, model: type[BaseModel], source: str) -> InputError:
    """One `InputError` that lists everything pydantic found wrong in `source`, a line per finding."""
    lines = [_line(finding, model) for finding in error.errors()]
    head = f"{source}: " if len(lines) == 1 else f"{source} has {len(lines)} problems:\n  "
    return InputError(head + "\n  ".join(lines))


def _line(finding: Any, model: type[BaseModel]) -> str:
    path = [str(part) for part in finding["loc"] if part != "[key]"]
    where = ".".join(path)
    value = finding["input"]
    kind = finding["type"]
    if kind == "value_error":
        text = str(finding["ctx"]["error"])
        if isinstance(value, (dict, BaseModel)):  # a rule about a whole table quotes the offending key itself
            return f"[{where}] {text}" if where else text
        return f"{where} = {shown(value)} {text}"
    if kind == "extra_forbidden":
        table = f"the table [{'.'.join(path[:-1])}]" if path[:-1] else "the top level"
        return unknown_key(where, value, table, list(_keys(model, path[:-1])))
    if kind == "missing":
        return f"{where} is missing. Cure: add it ({'a table' if len(path) == 1 and path[0] != 'steps' else 'a key'})"
    rule, cure = _rule_and_cure(finding)
    return problem(where, value, rule, cure)


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
        case "bool_type":
            return "must be true or false", "write one of the two, without quotes"
        case "string_type":
            return "must be a text", "put it in quotes"
        case "model_type" | "dict_type":
            where = ".".join(str(part) for part in finding["loc"])
            return "must be a table", f"write [{where}] on a line of its own and its keys below"
    text = str(finding["msg"])
    return text[0].lower() + text[1:], "give it such a value"


def unknown_key(key: str, value: object, table: str, known: list[str]) -> str:
    """The message about a key that `table` does not have; the cure names the closest of the known ones."""
    close = difflib.get_close_matches(key.rpartition(".")[2], known, n=1)
    cure = f"write {close[0]}" if close else f"remove it; the keys are {', '.join(known) or 'none'}"
    return problem(key, value, f"is not a key of {table}", cure)


def _keys(model: Any, path: list[str]) -> Iterable[str]:
    """The keys that a table of the scenario may have; the aliases, as a file spells them."""
    for part in path:
        if get_origin(model) is dict:  # keys of the author's own, such as the ranks in cluster.nic
            model = _model_in(get_args(model)[1])
            continue
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return ()
        by_key = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        model = _model_in(by_key.get(part))
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return ()
    return (field.alias or name for name, field in model.model_fields.items())


def _model_in(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next((_model_in(part) for part in get_args(annotation) if part is not type(None)), None)
    return annotation
