"""All explorers by name: notebooks, the Voilà pages, tests and documentation go through this table."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distsim.explorers.explorer import Explorer


@dataclass(frozen=True)
class Entry:
    """One explorer. name: of its module and its notebook. title: its heading. question: answered by it."""

    name: str
    title: str
    question: str

    def open(self) -> Explorer[Any]:
        """The explorer as a widget, at its first values."""
        view: Explorer[Any] = importlib.import_module(f"distsim.explorers.{self.name}").explorer()
        return view


_ENTRIES = (
    Entry(
        "backup_workers",
        "Synchronous or backup workers?",
        "What does it buy not to wait for the slowest workers, and what is wasted?",
    ),
    Entry(
        "update_policies",
        "Wait for all, for some, or for nobody?",
        "How much faster is training that does not wait, and how stale does it become?",
    ),
    Entry(
        "ring_or_server",
        "A ring or a parameter server?",
        "From how many workers on is a ring faster than a parameter server, and what do more servers help?",
    ),
    Entry(
        "collectives",
        "How does a collective work?",
        "What travels in each round of a collective, and what do its rounds and its bytes cost?",
    ),
    Entry(
        "overlap",
        "What hides behind backward?",
        "How much of the all-reduce disappears behind backward, and which buckets hide most?",
    ),
    Entry(
        "pipeline",
        "What fills a pipeline?",
        "How many micro-batches keep the stages busy, and how many must a stage hold meanwhile?",
    ),
    Entry(
        "race",
        "Who is ahead, and for how long?",
        "Which policy has the smallest error after so many seconds, and which one in the end?",
    ),
    Entry(
        "batch_size",
        "Which rate does a batch bear?",
        "Must the learning rate grow with the batch, and is anything lost where batches are large?",
    ),
    Entry(
        "failures",
        "How often to save?",
        "How often should a run save its state when workers fail now and then?",
    ),
    Entry(
        "your_cluster",
        "What would your cluster do?",
        "How fast will training be on your machine, from what its links were measured to do, and is that so?",
    ),
)
EXPLORERS: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}
