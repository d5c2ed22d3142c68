"""Where the course's own contest lies."""

from __future__ import annotations

from pathlib import Path

from distsim import material


def contest_folder() -> Path:
    """The folder of lab 15, with the problem and its references."""
    return material.home() / "labs" / material.CONTEST
