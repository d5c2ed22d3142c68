"""The calibration file: JSON, read strictly. `simulate` takes its scenario's links from this file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError, model_validator

from distsim import files
from distsim.calibration.exchange import Exchange, exchanged_bytes
from distsim.calibration.links import exchange_of
from distsim.calibration.machine import MachineCalibration
from distsim.errors import InputError
from distsim.scenario import Scenario
from distsim.scenario_errors import findings
from distsim.validated_table import ValidatedTable

LARGEST_MEGABYTES = 10


class _File(ValidatedTable):
    """The content of a file. Version 1 had no machine."""

    distsim_calibration: Literal[1, 2]
    exchanges: tuple[Exchange, ...]
    machine: MachineCalibration | None = None

    @model_validator(mode="after")
    def _holds_something(self) -> _File:
        if not self.exchanges and self.machine is None:
            raise ValueError("holds nothing")
        return self


@dataclass(frozen=True)
class Calibration:
    """Exchanges measured for single scenarios, and the calibration of a machine if there is one.

    >>> from distsim import example
    >>> known = Calibration((Exchange("ring", 4, 1.1e9, 1e-4, 0.0, ()),))
    >>> known.of(example("synchronous_ring")).latency_seconds
    0.0001
    """

    exchanges: tuple[Exchange, ...] = ()
    machine: MachineCalibration | None = None

    def of(self, scenario: Scenario) -> Exchange:
        """The links of `scenario` on this machine. Raises InputError if no measurement applies.

        An exchange of the scenario's kind and number of workers comes first: the one nearest in size.
        """
        key = (scenario.communication.kind, scenario.cluster.workers)
        matching = [exchange for exchange in self.exchanges if (exchange.kind, exchange.workers) == key]
        if matching:
            return _closest(matching, exchanged_bytes(scenario))
        if self.machine is not None:
            return exchange_of(self.machine, scenario)
        known = ", ".join(f"{exchange.kind} with {exchange.workers}" for exchange in self.exchanges) or "nothing"
        raise InputError.of(
            f"calibration for {key[0]} with workers", key[1], f"the calibration holds {known}",
            "calibrate this collective at this number of workers",
        )  # fmt: skip

    def describe(self, scenario: Scenario) -> str:
        """One sentence for a report: the links of `scenario`, and the links that were measured, if known."""
        found = self.of(scenario)
        if self.machine is None or not found.measured_workers:
            return found.describe()
        return f"{found.describe()}; the calibration was made on {self.machine.links}"

    def as_dict(self) -> dict[str, Any]:
        """The content of the file as plain values."""
        exchanges = [exchange.as_dict() for exchange in self.exchanges]
        table: dict[str, Any] = {"distsim_calibration": 2, "exchanges": exchanges}
        if self.machine is not None:
            table["machine"] = self.machine.model_dump(mode="json", by_alias=True)
        return table

    def save(self, path: Path) -> None:
        """Writes the calibration file."""
        files.write_text(path, json.dumps(self.as_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Calibration:
        """Reads a file that `save` of this or an earlier version wrote. Raises InputError."""
        try:
            found = _File.model_validate_json(files.read(path, LARGEST_MEGABYTES))
        except OSError as error:
            rule = f"cannot be read ({error.strerror})"
        except ValidationError as error:
            rule = f"is not a calibration that distsim wrote ({findings(error)})"
        else:
            return cls(found.exchanges, found.machine)
        raise InputError.of("calibration file", str(path), rule, "name a file that distsim calibrate wrote")


def _closest(exchanges: Sequence[Exchange], num_bytes: float) -> Exchange:
    """The exchange nearest in size, by ratio. Raises InputError if several are equally near and differ."""

    def away(exchange: Exchange) -> float:
        measured = max((size for size, _ in exchange.points), default=math.inf)
        return abs(math.log(max(measured, 1.0) / max(num_bytes, 1.0)))

    least = min(map(away, exchanges))
    nearest = [exchange for exchange in exchanges if away(exchange) == least]
    if any(other != nearest[0] for other in nearest):
        what = f"calibration for {nearest[0].kind} with {nearest[0].workers} workers"
        raise InputError.of(
            what, f"{len(nearest)} exchanges", "are equally near to this size, and differ", "leave one in the file"
        )
    return nearest[0]
