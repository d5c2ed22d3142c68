"""One training of a small network, written four ways: bare DDP, Horovod's functions, Lightning and Accelerate."""

from distsim.frameworks.recorded import trained_or_recorded
from distsim.frameworks.scripts import script, statements
from distsim.frameworks.training import WAYS, Run, trained

__all__ = ["WAYS", "Run", "script", "statements", "trained", "trained_or_recorded"]
