"""What all parts of a scenario share: frozen, unknown keys refused, values checked by pydantic within bounds.

No field is without bounds: what no run could mean is refused when it is read, and not found out in the middle of one.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict

LARGEST_COUNT = 10**9  # more of anything would run for years
LONGEST_RANK = 9  # digits
LARGEST_NAME = 200  # characters: names are titles of tables and figures

Count = Annotated[int, Ge(1), Le(LARGEST_COUNT)]
CountOrZero = Annotated[int, Ge(0), Le(LARGEST_COUNT)]
Factor = Annotated[float, Ge(1e-6), Le(1e6)]


class Description(BaseModel):
    """One table of a scenario file: validated, frozen, without a clock."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=False, protected_namespaces=()
    )


def rank_keys(table: object) -> object:
    """TOML keys are text: {"3": 2.0} becomes {3: 2.0}; other keys, "03" too, are left for validation to refuse."""
    if not isinstance(table, dict):
        return table

    def rank(key: object) -> object:
        if not isinstance(key, str) or not key.isdecimal() or len(key) > LONGEST_RANK:
            return key
        return int(key) if str(int(key)) == key else key

    return {rank(key): value for key, value in table.items()}
