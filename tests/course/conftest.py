"""Chapters are looked at in the browser that explorers are."""

from tests.explorers.conftest import browser, page, problems

__all__ = ["browser", "page", "problems"]
