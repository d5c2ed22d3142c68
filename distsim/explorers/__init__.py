"""Explorers: move a control, and the scenario is simulated and drawn anew. One module per idea, one frame for all."""

from distsim.explorers.frame import Frame

__all__ = ["Frame"]
