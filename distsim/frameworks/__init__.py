"""One training of a small network, written four ways: bare DDP, Horovod's functions, Lightning and Accelerate."""

from distsim.frameworks.training import WAYS, Run, script, statements, trained, trained_or_recorded

__all__ = ["WAYS", "Run", "script", "statements", "trained", "trained_or_recorded"]
