"""What all parts of a scenario share: frozen, unknown keys refused, values checked by pydantic within bounds.

No field is without bounds: what no run could mean is refused when it is read, and not found out in the middle of one.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict

LARGEST_COUNT = 10**9  # more of anything would run for years
LARGEST_NAME = 200  # characters: names are titles of tables and figures

Count = Annotated[int, Ge(1), Le(LARGEST_COUNT)]
CountOrZero = Annotated[int, Ge(0), Le(LARGEST_COUNT)]
Factor = Annotated[float, Ge(1e-6), Le(1e6)]
NOT_YET = "not available yet"  # marks a key that is part of the contract and still refused


class Description(BaseModel):
    """One table of a scenario file: validated, frozen, without a clock."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=False, protected_namespaces=()
    )
