"""Scenarios with free communication, so that only compute times and the policy's rule matter."""

from __future__ import annotations

from typing import Any

from distsim.scenario import Scenario

Table = dict[str, Any]
EXPONENTIAL: Table = {"distribution": "exponential", "mean": "1 s"}


def free(policy: Table, compute: Table, workers: int, steps: int, seed: int = 7, **tables: Any) -> Scenario:
    """A scenario without latency and without bytes to send. tables: more tables, or replacements of these.

    >>> free({"kind": "synchronous"}, EXPONENTIAL, workers=4, steps=10).gradient_bytes
    0.0
    """
    return Scenario.of(
        {
            "steps": steps,
            "seed": seed,
            "cluster": {"workers": workers, "bandwidth": "1000 Gbit/s", "latency": "0 s"},
            "compute": compute,
            "workload": {"gradient": "0 B"},
            "policy": policy,
            "communication": {"kind": "parameter_server"},
        }
        | tables
    )
