"""Every control of every explorer does something: what is drawn, or the table, and the sentence on what changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.update_policies import HISTOGRAM

# Of each explorer: its controls, in the order in which they are moved, and what to.
MOVES: dict[str, dict[str, Any]] = {
    "backup_workers": {
        "workers": 6, "backups": 2, "cv": 0.6, "pause_percent": 10, "gradient_mib": 16.0, "gbit_per_second": 1.0,
        "cancel": True, "seed": 8,
    },
    "update_policies": {
        "workers": 5, "slow": 3.0, "ahead": 0, "picture": HISTOGRAM, "cv": 0.6, "gradient_mib": 16.0,
        "gbit_per_second": 1.0, "seed": 8,
    },
    "ring_or_server": {
        "workers": 12, "servers": 2, "gradient_mib": 64.0, "slow": 2.0, "colocated": True, "gbit_per_second": 1.0,
    },
    "collectives": {
        "kind": "tree", "workers": 5, "after": 2, "gradient_mib": 64.0, "gbit_per_second": 1.0, "latency_us": 1000.0,
    },
    "overlap": {
        "bucket_mib": 5.0, "gbit_per_second": 2.0, "accumulate": 2, "half": True, "workers": 4, "layers": 32,
        "gradient_mib": 50.0, "compute_ms": 100.0, "latency_us": 500.0, "cv": 0.3, "seed": 8,
    },
    "pipeline": {
        "stages": 5, "micro_batches": 16, "schedule": "1f1b", "batch": 64, "sample_ms": 2.0, "activation_mib": 1.0,
        "gbit_per_second": 5.0, "slow": 1.5, "cv": 0.3, "eager": True, "seed": 8,
    },
    "race": {"rate": 0.05, "first": 2, "ahead": 4, "workers": 6, "batch": 4, "cv": 0.5, "seed": 8},
    "batch_size": {"epochs": 2, "largest": 32, "highest": 0.32, "quantity": "loss", "rates": 2, "runs": 2},
    "failures": {
        "interval_minutes": 30.0, "mean_time_between_days": 5.0, "checkpoint_seconds": 120.0, "workers": 32,
        "restart_seconds": 600.0, "seed": 8,
    },
}  # fmt: skip
OF_A_FILE = {"your_cluster"}  # its own test has the file
# The picture stays: a collective's shows no seconds, and of steps that are summed only the last one sends.
TABLE_ALONE = {
    ("overlap", "accumulate"), ("collectives", "gradient_mib"), ("collectives", "gbit_per_second"),
    ("collectives", "latency_us"),
}  # fmt: skip
ALWAYS_A_NUMBER = {"failures", "overlap", "pipeline", "race"}  # of those watched


def test_all_explorers_are_moved() -> None:
    assert set(MOVES) | OF_A_FILE == set(EXPLORERS)


@pytest.mark.parametrize("name", MOVES)
def test_every_control_changes_what_is_shown_and_the_sentence_on_change(name: str) -> None:
    view = EXPLORERS[name].open()
    start = view.parameters
    assert set(MOVES[name]) == set(view.controls)
    for field, value in MOVES[name].items():
        assert view.shown is not None, view.message.value
        before = view.shown
        view.controls[field].value = value
        assert view.message.value == "", field
        if (name, field) in TABLE_ALONE:
            assert view.shown.table != before.table, field
        else:
            assert view.shown.figure != before.figure, field
        assert ">Changed " in view.changed.value, field
        assert name not in ALWAYS_A_NUMBER or "no number in the table changed" not in view.changed.value, field
    assert view.parameters == replace(start, **MOVES[name])
