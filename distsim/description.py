"""What all parts of a scenario share: frozen, unknown keys refused, lengths checked by pydantic."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Description(BaseModel):
    """One table of a scenario file: validated, frozen, without a clock."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=False, protected_namespaces=()
    )
