"""Recorded runs, for machines without Lightning or Accelerate.

`python -m distsim.frameworks.recorded` runs them anew.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from distsim.extras import need
from distsim.files import write_text
from distsim.frameworks.training import WAYS, Run, trained

RECORDED = Path(__file__).with_name("recorded.json")
SIZES = ((2, 200), (4, 23))  # ranks and updates, as in chapter 11


def trained_or_recorded(way: str, workers: int = 2, updates: int = 50) -> Run:
    """As `trained`; where the way's package is missing, the recorded run.

    Raises InputError where the package is missing and no such run was recorded.
    """
    if way not in WAYS or find_spec(WAYS[way]) is not None:
        return trained(way, workers, updates)
    held = json.loads(RECORDED.read_text("utf-8"))
    if (found := held.get(f"{way}, {workers} ranks, {updates} updates")) is None:
        need(WAYS[way], f"the training by {way}")
    return Run(
        np.array(found["losses"]), np.array(found["step_seconds"]), np.empty((workers, 0)), found["final_loss"],
        recorded=True,
    )  # fmt: skip


def record() -> None:
    """Runs what chapter 11 runs, and writes the recorded runs anew."""
    asked = [(way, *sizes) for way in WAYS for sizes in SIZES]
    found = {
        f"{way}, {workers} ranks, {updates} updates": trained(way, workers, updates) for way, workers, updates in asked
    }
    held = {
        name: {
            "losses": run.losses.round(6).tolist(), "step_seconds": run.step_seconds.round(6).tolist(),
            "final_loss": round(run.final_loss, 6),
        }
        for name, run in found.items()
    }  # fmt: skip
    write_text(RECORDED, json.dumps(held))


if __name__ == "__main__":
    record()
