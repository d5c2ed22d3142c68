"""Parts of a scenario's table that explorers write alike, from what their controls set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from distsim.scenario import Scenario

STEPS = 50


class ServerRun(Protocol):
    """The parameters that explorers of one parameter server share."""

    @property
    def workers(self) -> int: ...
    @property
    def gradient_mib(self) -> float: ...
    @property
    def gbit_per_second(self) -> float: ...
    @property
    def seed(self) -> int: ...


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


def with_one_server(
    parameters: ServerRun, compute_times: Mapping[str, Any], policies: Mapping[str, Mapping[str, Any]]
) -> tuple[Scenario, ...]:
    """A scenario for each policy, by its name: one parameter server, the same cluster, the same draws.

    Raises InputError where a policy does not fit the cluster.
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
