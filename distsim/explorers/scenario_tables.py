"""Parts of a scenario's table that explorers write alike, from what their controls set."""

from __future__ import annotations

from typing import Any


def compute(mean: str, cv: float) -> dict[str, Any]:
    """Compute times of this mean: constant without a spread, else lognormal with cv = standard deviation / mean.

    >>> compute("50 ms", 0.0)
    {'distribution': 'constant', 'mean': '50 ms'}
    >>> compute("50 ms", 0.3)
    {'distribution': 'lognormal', 'mean': '50 ms', 'cv': 0.3}
    """
    if cv > 0.0:
        return {"distribution": "lognormal", "mean": mean, "cv": round(cv, 6)}
    return {"distribution": "constant", "mean": mean}


def cluster(workers: int, gbit_per_second: float, latency_us: float = 50.0) -> dict[str, Any]:
    """Workers whose NICs are alike.

    >>> cluster(4, gbit_per_second=10.0)
    {'workers': 4, 'bandwidth': '10 Gbit/s', 'latency': '50 us'}
    """
    return {"workers": workers, "bandwidth": f"{gbit_per_second:g} Gbit/s", "latency": f"{latency_us:g} us"}
