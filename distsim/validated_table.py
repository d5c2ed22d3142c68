"""The base of all tables in scenario and calibration files: frozen, no unknown keys, every value checked by pydantic.

Every field has bounds, so that a value no run could use is refused when the file is read, not in the middle of a run.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict

LARGEST_COUNT = 10**9  # a run with more of anything would take years
LONGEST_RANK = 9  # digits
LARGEST_NAME = 200  # characters: names are titles of tables and figures

Count = Annotated[int, Ge(1), Le(LARGEST_COUNT)]
CountOrZero = Annotated[int, Ge(0), Le(LARGEST_COUNT)]
Factor = Annotated[float, Ge(1e-6), Le(1e6)]


class ValidatedTable(BaseModel):
    """One table of a file: validated and frozen."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=False, protected_namespaces=()
    )


def rank_keys(table: object) -> object:
    """TOML keys are text: {"3": 2.0} becomes {3: 2.0}. Other keys, such as "03", are left for validation to refuse."""
    if not isinstance(table, dict):
        return table

    def rank(key: object) -> object:
        if not isinstance(key, str) or not key.isdecimal() or len(key) > LONGEST_RANK:
            return key
        return int(key) if str(int(key)) == key else key

    return {rank(key): value for key, value in table.items()}
