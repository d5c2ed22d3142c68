"""A plan for a cluster: the ways to train a model on it that distsim knows, simulated; those that fit, by time.

ways     which ways there are, what each holds, and whether it fits
ranking  their times by the simulator, the order, the frontier and the verdict
"""

from distsim.plan.ranking import By, distinct, frontier, plan, ranked, simulated, value_of, verdict
from distsim.plan.ways import NO_FORMULA, TOO_LARGE, Way, ways

__all__ = [
    "NO_FORMULA",
    "TOO_LARGE",
    "By",
    "Way",
    "distinct",
    "frontier",
    "plan",
    "ranked",
    "simulated",
    "value_of",
    "verdict",
    "ways",
]  # fmt: skip
