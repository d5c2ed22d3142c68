"""Parts of a scenario's table that several explorers build from the values of their controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from distsim.scenario import Scenario

STEPS = 50


def compute(mean: str, cv: float) -> dict[str, Any]:
    """Compute times: constant where cv is 0, else lognormal with cv = standard deviation / mean.

    >>> compute("50 ms", 0.0)
    {'distribution': 'constant', 'mean': '50 ms'}
    >>> compute("50 ms", 0.3)
    {'distribution': 'lognormal', 'mean': '50 ms', 'cv': 0.3}
    """
    if cv > 0.0:
        return {"distribution": "lognormal", "mean": mean, "cv": round(cv, 6)}
    return {"distribution": "constant", "mean": mean}


def cluster(workers: int, gbit_per_second: float, latency_us: float = 50.0) -> dict[str, Any]:
    """Workers with equal NICs.

    >>> cluster(4, gbit_per_second=10.0)
    {'workers': 4, 'bandwidth': '10 Gbit/s', 'latency': '50 us'}
    """
    return {"workers": workers, "bandwidth": f"{gbit_per_second:g} Gbit/s", "latency": f"{latency_us:g} us"}


def with_one_server(
    parameters: Any, compute_times: Mapping[str, Any], policies: Mapping[str, Mapping[str, Any]]
) -> tuple[Scenario, ...]:
    """A scenario for each policy, by name: one parameter server, the same cluster and the same draws for all.

    parameters: of an explorer, with workers, gbit_per_second, gradient_mib and seed. Raises InputError where a policy
    does not fit the cluster.
    """
    table = {
        "steps": STEPS,
        "seed": parameters.seed,
        "cluster": cluster(parameters.workers, parameters.gbit_per_second),
        "compute": compute_times,
        "workload": {"gradient": f"{parameters.gradient_mib:g} MiB"},
        "communication": {"kind": "parameter_server"},
    }
    return tuple(Scenario.of(table | {"name": name, "policy": policy}) for name, policy in policies.items())
