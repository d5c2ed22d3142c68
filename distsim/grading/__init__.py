"""Graded labs: what a check finds, what it is worth, and how submissions are run through the checks."""

from distsim.grading.check import Finding, check
from distsim.grading.notebook import Notebook
from distsim.grading.result import Result

__all__ = ["Finding", "Notebook", "Result", "check"]
