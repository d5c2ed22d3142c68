"""Explorers: move a control, and the scenario is simulated and drawn again. One module per idea, one frame for all."""

from distsim.explorers.explorer import Explorer

__all__ = ["Explorer"]
