"""Collectives as data: how bytes travel, checked, counted, costed, simulated, drawn and run from one object."""

from distsim.collectives.all_gather import all_gather
from distsim.collectives.all_to_all import all_to_all
from distsim.collectives.broadcast import broadcast, send
from distsim.collectives.gather import gather
from distsim.collectives.halving_doubling import halving_doubling
from distsim.collectives.hierarchical import hierarchical
from distsim.collectives.parameter_server import parameter_server
from distsim.collectives.reduce import reduce
from distsim.collectives.reduce_scatter import reduce_scatter
from distsim.collectives.ring import ring
from distsim.collectives.scatter import scatter
from distsim.collectives.schedule import Schedule, ScheduleError
from distsim.collectives.table import ALL_REDUCES, COLLECTIVES, Collective, Topology
from distsim.collectives.transfer import RingRound, Transfer
from distsim.collectives.tree import tree

__all__ = [
    "ALL_REDUCES",
    "COLLECTIVES",
    "Collective",
    "RingRound",
    "Schedule",
    "ScheduleError",
    "Topology",
    "Transfer",
    "all_gather",
    "all_to_all",
    "broadcast",
    "gather",
    "halving_doubling",
    "hierarchical",
    "parameter_server",
    "reduce",
    "reduce_scatter",
    "ring",
    "scatter",
    "send",
    "tree",
]
