"""The environment variables by which grading tells a notebook's kernel what a student's kernel does not know."""

from __future__ import annotations

RESULTS_VARIABLE = "DISTSIM_GRADING_RESULTS"  # the file that results are written to
SEED_VARIABLE = "DISTSIM_GRADING_SEED"  # inputs are drawn from it
SERVER_VARIABLE = "DISTSIM_GRADING_FORK_SERVER"  # where the fork server listens
