"""Chapters are looked at in the browser that explorers are, and in a JupyterLab such as theirs."""

from tests.explorers.conftest import browser, lab, page, problems

__all__ = ["browser", "lab", "page", "problems"]
