"""Graded labs: checks, their findings and results, and the grading of submissions."""

from distsim.grading.check import Finding, check
from distsim.grading.notebook import Notebook
from distsim.grading.result import Result

__all__ = ["Finding", "Notebook", "Result", "check"]
