"""The figures that move on the pages about the package and its figures: a ring at work, and a race of policies.

On GitHub these pages show still pictures, `course/pictures/NAME.svg`, which `make pictures` draws. On the site the
figures move.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from distsim.chunk_movements import ChunkMovements
from distsim.cluster import Cluster
from distsim.collectives import parameter_server, ring
from distsim.figures.animation import Animation
from distsim.figures.chunks_on_links import chunks_on_links
from distsim.figures.lanes_and_loss import lanes_and_loss
from distsim.learning.experiments import race

WORKERS = 4
RACERS = {
    "synchronous, 8 x rate": ("synchronous", 8.0),
    "4 of 8": ("4 of 8", 1.0),
    "asynchronous": ("asynchronous", 1.0),
}
RACE_SECONDS, SEED = 120.0, 2


def ring_at_work() -> Animation:
    """A gradient of 64 MB of four workers, on links of 10 Gbit/s, around a ring and through a server.

    >>> ring_at_work().summary.partition(":")[0]
    'The ring ends after 77.1 ms'
    """
    cluster = Cluster(workers=WORKERS, bandwidth="10 Gbit/s", latency="50 us")  # type: ignore[arg-type]
    ways = (ring(WORKERS), parameter_server(WORKERS))
    return chunks_on_links([ChunkMovements.simulated(way, cluster, "64 MB") for way in ways])


def race_of_policies() -> Animation:
    """Eight workers learn by three policies; all gradients are of the same size.

    >>> race_of_policies().summary.partition(";")[0]
    'Asynchronous is first at a loss of 0.134, after 19.8 s'
    """
    traces = {line: race.trace(name, SEED, RACE_SECONDS) for line, (name, _) in RACERS.items()}
    rates = {line: times * race.RATE for line, (_, times) in RACERS.items()}
    return lanes_and_loss(traces, {line: race.learned(trace, rates[line]) for line, trace in traces.items()})


FILMS: dict[str, Callable[[], Animation]] = {"chunks_on_links": ring_at_work, "lanes_and_loss": race_of_policies}
STILL = re.compile(rf"!\[[^]]*\]\([\w/]*({'|'.join(FILMS)})\.svg\)")  # a still picture in a page's Markdown


def moving(markdown: str) -> str:
    """The text of a page with figures in place of their still pictures.

    >>> moving("![A ring.](pictures/chunks_on_links.svg)").partition("<")[0]
    '````````{raw} html\\n'
    """
    return STILL.sub(lambda found: f"````````{{raw}} html\n{FILMS[found[1]]().html()}\n````````", markdown)


def save_stills(folder: str | Path) -> None:
    """Draws the still pictures into a folder."""
    for name, film in FILMS.items():
        film().save(Path(folder) / f"{name}.svg")
