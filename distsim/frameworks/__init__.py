"""One training of a small network, written four ways: bare DDP, Horovod's functions, Lightning and Accelerate."""

from distsim.frameworks.training import WAYS, Run, trained

__all__ = ["WAYS", "Run", "trained"]
