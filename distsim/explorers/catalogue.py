"""All explorers by name: notebooks, the Voilà pages, the site, tests and documentation go through this table."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distsim.explorers.explorer import Explorer
    from distsim.figures.captioned import Captioned


@dataclass(frozen=True)
class Move:
    """A control that also moves on the site, where no Python runs.

    field: of the explorer's parameters. stops: its values on the site, from the least to the largest; empty for all
    values of the control.
    """

    field: str
    stops: tuple[float, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One explorer.

    name: of its module and its notebook. title: its heading. question: answered by it. moves: the controls that move
    on the site, the primary control first. `make site` computes a figure for each combination of their stops.
    frames: the field of the control that leads through the frames of an animated figure, "" where there is none. On the
    site, this control moves too.
    """

    name: str
    title: str
    question: str
    moves: tuple[Move, ...]
    frames: str = ""

    def open(self) -> Explorer[Any]:
        """The explorer as a widget, at its first values."""
        view: Explorer[Any] = self._module().explorer()
        return view

    def start(self) -> Any:
        """The parameters at first."""
        return self._module().Parameters()

    def explore(self, values: Mapping[str, Any]) -> Captioned:
        """The figure, sentence and table where these fields of the first parameters have other values.

        Raises InputError for an impossible combination.

        >>> [row["policy"] for row in EXPLORERS["backup_workers"].explore({"backups": 2}).table]
        ['synchronous', '2 backups']
        """
        found: Captioned = self._module().explore(replace(self.start(), **values))
        return found

    def _module(self) -> ModuleType:
        return importlib.import_module(f"distsim.explorers.{self.name}")


_ENTRIES = (
    Entry(
        "backup_workers",
        "Synchronous or backup workers?",
        "What is gained by not waiting for the slowest workers, and what is wasted?",
        (Move("backups", (0, 1, 2, 3, 4, 8, 16)), Move("workers", (2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64))),
    ),
    Entry(
        "update_policies",
        "Wait for all, for some, or for nobody?",
        "How much faster is training that does not wait, and how stale do its gradients become?",
        (Move("slow"), Move("ahead", (0, 1, 2, 4, 8, 16))),
    ),
    Entry(
        "ring_or_server",
        "A ring or a parameter server?",
        "From how many workers on is a ring faster than a parameter server, and how much do more servers help?",
        (Move("workers", (*range(2, 17), 20, 24, 28, 32, 40, 48, 56, 64)), Move("servers", (1, 2, 4, 8, 16))),
    ),
    Entry(
        "collectives",
        "How does a collective work?",
        "What travels in each round of a collective, and what do its rounds and its bytes cost?",
        (Move("workers"), Move("kind")),
        frames="after",
    ),
    Entry(
        "overlap",
        "What hides behind backward?",
        "How much of the all-reduce disappears behind backward, and which buckets hide most?",
        (Move("bucket_mib"), Move("gbit_per_second")),
    ),
    Entry(
        "pipeline",
        "What fills a pipeline?",
        "How many micro-batches keep the stages busy, and how many must a stage hold at once?",
        (Move("micro_batches"), Move("stages"), Move("schedule")),
    ),
    Entry(
        "race",
        "Which policy is ahead, and for how long?",
        "Which policy has the smallest error after so many seconds, and which one in the end?",
        (Move("first"), Move("rate")),
    ),
    Entry(
        "batch_size",
        "Which learning rate suits a batch size?",
        "Must the learning rate grow with the batch, and what does a large batch lose?",
        (Move("epochs"), Move("largest")),
    ),
    Entry(
        "failures",
        "How often to save?",
        "How often should a run save its state when workers fail now and then?",
        (Move("interval_minutes"), Move("mean_time_between_days")),
    ),
    Entry(
        "your_cluster",
        "What would your cluster do?",
        "How fast will training be on the measured links of your machine, and is the prediction right?",
        (Move("workers"), Move("updates")),
    ),
)
EXPLORERS: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}
