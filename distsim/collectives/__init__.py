"""Collectives as data: how bytes travel, checked, counted, costed, simulated, drawn and run from one object."""

from distsim.collectives.parameter_server import parameter_server
from distsim.collectives.ring import ring
from distsim.collectives.schedule import Schedule, Transfer

__all__ = ["Schedule", "Transfer", "parameter_server", "ring"]
