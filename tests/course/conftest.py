"""Tests of chapters use the browser and the JupyterLab of the explorers' tests."""

from tests.explorers.conftest import browser, lab, page, problems

__all__ = ["browser", "lab", "page", "problems"]
