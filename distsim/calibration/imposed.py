"""The emulated links of a calibration, kept to recognize runs on other links."""

from __future__ import annotations

import math
from typing import Annotated

from annotated_types import Ge, Le

from distsim.cluster import Cluster
from distsim.units import BOUNDS, show, write
from distsim.validated_table import ValidatedTable

SLOWEST, FASTEST = BOUNDS["byte/second"]


class Imposed(ValidatedTable):
    """The requested bandwidth of every NIC and latency between two NICs; None if the kernel could impose no latency.

    >>> str(Imposed(bandwidth_bytes_per_second=125e6, latency_seconds=5e-5))
    '1 Gbit/s and 50 us'
    """

    bandwidth_bytes_per_second: Annotated[float, Ge(SLOWEST), Le(FASTEST)]
    latency_seconds: Annotated[float, Ge(0.0), Le(BOUNDS["second"][1])] | None

    def are_those_of(self, cluster: Cluster) -> bool:
        """Whether a run on this cluster's emulated links has these links; an unknown latency counts as equal.

        >>> from distsim import example
        >>> found = Imposed(bandwidth_bytes_per_second=1.25e9, latency_seconds=None)
        >>> found.are_those_of(example("synchronous_ring").cluster)
        True
        """
        asked = (cluster.bandwidth_bytes_per_second, cluster.latency_seconds)
        latency = cluster.latency_seconds if self.latency_seconds is None else self.latency_seconds
        return all(map(math.isclose, asked, (self.bandwidth_bytes_per_second, latency)))

    def __str__(self) -> str:
        latency = "no latency imposed" if self.latency_seconds is None else show(self.latency_seconds, "second")
        return f"{show(self.bandwidth_bytes_per_second, 'byte/second')} and {latency}"


def calibrate_command(cluster: Cluster, options: str = "", *, emulated: bool) -> str:
    """The command that makes a calibration for this cluster; for its emulated links, with these.

    >>> calibrate_command(Cluster(workers=2, bandwidth="1 Gbit/s", latency="1 ms"), "--workers 1,2", emulated=True)
    "distsim calibrate --workers 1,2 --emulate --bandwidth '1 Gbit/s' --latency '1 ms' --out machine.json"
    """
    bandwidth = write(cluster.bandwidth_bytes_per_second, "byte/second")
    links = f"--emulate --bandwidth '{bandwidth}' --latency '{write(cluster.latency_seconds, 'second')}'"
    return " ".join(["distsim calibrate", *filter(None, [options, links * emulated]), "--out machine.json"])
