"""The record of a learner's guesses, predictions and measurements in all chapters.

A learner's copy of the course keeps the record in a file, so that a chapter shows those of the chapters before. A
quantity's first comparison counts: whoever has seen the measurement knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from distsim import files
from distsim.course.folder import learners_folder
from distsim.errors import InputError
from distsim.scenario_errors import findings

if TYPE_CHECKING:
    from distsim.figures import Captioned

FILE = "my_guesses.json"  # in the copy's course/
LARGEST_MEGABYTES = 10
Values = tuple[float, ...]  # one, or one for each repeat; empty where there is none


@dataclass(frozen=True)
class Compared:
    """What a learner compared: one quantity of one chapter, in `unit`."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    chapter: str
    quantity: str
    unit: str
    guess: float
    formula: Values = ()
    simulation: Values = ()
    measurement: Values = ()

    @property
    def name(self) -> str:
        """The quantity in the record, such as "00: step time (ms)"."""
        return f"{self.chapter}: {self.quantity}" + f" ({self.unit})" * bool(self.unit)


RECORD = TypeAdapter(list[Compared])


class Record:
    """The comparisons of all chapters, first comparison first. path: of its file; None: it lasts as long as the kernel.

    Each call reads the file anew, since several notebooks may be open.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._own: list[Compared] = []

    @classmethod
    def of_learner(cls) -> Record:
        """The record in the learner's copy around the current folder. Elsewhere it lasts as long as the kernel."""
        copy = learners_folder()
        return cls(copy / "course" / FILE if copy else None)

    def kept(self) -> list[Compared]:
        """What was compared so far. Raises InputError where the file is no record."""
        if self.path is None:
            return list(self._own)
        if not self.path.exists():
            return []
        try:
            return RECORD.validate_json(files.read(self.path, LARGEST_MEGABYTES))
        except OSError as error:
            rule = f"cannot be read ({error.strerror})"
        except ValidationError as error:
            rule = f"is not a record that distsim wrote ({findings(error)})"
        raise InputError.of("record of guesses", str(self.path), rule, "move the file away: a new one is begun")

    def keep(self, compared: Compared) -> Compared:
        """Keeps a comparison that has a measurement, unless its quantity has one already. Returns the one that counts.

        Raises InputError where the file is no record, or cannot be written.
        """
        before = self.kept()
        for one in before:
            if (one.chapter, one.quantity) == (compared.chapter, compared.quantity):
                return one
        if compared.measurement:
            self._own = [*before, compared]
            if self.path is not None:
                files.write_text(self.path, RECORD.dump_json(self._own, indent=1).decode() + "\n")
        return compared

    def drawn(self) -> Captioned:
        """The figure and the table of all that was compared, in the order of chapters."""
        from distsim.figures import guesses

        return guesses(
            {
                one.name: {
                    "guess": one.guess, "formula": one.formula or None, "simulation": one.simulation or None,
                    "measurement": one.measurement or None,
                }
                for one in sorted(self.kept(), key=lambda one: one.chapter)
            }
        )  # fmt: skip
