"""The figure on the pages about the package and its figures: one gradient around a ring, and through a server.

On GitHub these pages show its still picture, `course/pictures/chunks_on_links.svg`; on the site the figure moves.
"""

from __future__ import annotations

import re

from distsim.chunk_movements import ChunkMovements
from distsim.cluster import Cluster
from distsim.collectives import parameter_server, ring
from distsim.figures.chunks_on_links import ChunksOnLinks, chunks_on_links

WORKERS = 4
STILL = re.compile(r"!\[[^]]*\]\([\w/]*chunks_on_links\.svg\)")  # the picture in a page's Markdown


def ring_at_work() -> ChunksOnLinks:
    """A gradient of 64 MB of four workers, on links of 10 Gbit/s.

    >>> ring_at_work().summary.partition(":")[0]
    'The ring ends after 77.1 ms'
    """
    cluster = Cluster(workers=WORKERS, bandwidth="10 Gbit/s", latency="50 us")  # type: ignore[arg-type]
    ways = (ring(WORKERS), parameter_server(WORKERS))
    return chunks_on_links([ChunkMovements.simulated(way, cluster, "64 MB") for way in ways])


def moving(markdown: str) -> str:
    """The text of a page with the figure in place of its still picture.

    >>> moving("![A ring.](pictures/chunks_on_links.svg)").partition("<")[0]
    '````````{raw} html\\n'
    """
    return STILL.sub(lambda _: f"````````{{raw}} html\n{ring_at_work().html()}\n````````", markdown)
