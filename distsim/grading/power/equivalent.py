"""Mutants that are right although they were changed: labs/NN/equivalent.toml names them, each with the reason.

["solution:ring_all_reduce:3:swap_arguments"]
line = "reduce_scatter(parts)"
reason = "..."
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from distsim import files, toml
from distsim.errors import InputError
from distsim.grading.lab import MOST_MEGABYTES, Lab
from distsim.grading.power.mutant import Mutant, known

EQUIVALENT = "equivalent.toml"


class Equivalent(BaseModel):
    """line: the changed statement, as `distsim lab power` prints it. reason: why the changed solution is right.

    differs: what the lab leaves to the student, and so may differ from the solution; all else must be equal.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    line: str
    reason: Annotated[str, Field(min_length=10)]
    differs: list[Literal["results", "bytes", "messages", "collectives", "virtual time"]] = []


def equivalents(lab: Lab, made: Mapping[str, Mutant]) -> dict[str, Equivalent]:
    """The mutants that a lab names as right. made: all mutants of the lab, by key.

    Raises InputError if an entry has a wrong key or no reason, or if its line is another one by now.
    """
    path = lab.folder / EQUIVALENT
    if not path.is_file():
        return {}
    table = toml.read(files.read(path, MOST_MEGABYTES).decode("utf-8"), str(path))
    try:
        found = TypeAdapter(dict[str, Equivalent]).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError.of(str(path), place, f"is wrong ({first['msg']})", "write line and reason as texts") from None
    for key, one in found.items():
        line = known(key, made, str(path)).line
        if line != one.line:
            rule = f"names another line: there it is {line!r} now"
            raise InputError.of(f"{path}, {key}", one.line, rule, "look whether the reason still holds")
    return found
