"""How well real runs on this machine are predicted: a row for each policy and each kind of links.

Loopback is the machine's own links, calibrated just before each run. Emulated links are imposed, so the prediction
takes the scenario's; of the machine it knows only what the launch measured before the run (`predict_emulated`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from distsim.comparison import Comparison, compare
from distsim.errors import InputError, RunError
from distsim.experiment import predict_and_measure, predict_emulated
from distsim.runtime.emulation import trial
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.trace import Trace

WORKERS, STEPS, SEED = 4, 16, 11
COMPUTE = {"distribution": "lognormal", "mean": "50 ms", "cv": 0.3}
RING, SERVER = {"kind": "ring"}, {"kind": "parameter_server"}
Kind = tuple[dict[str, Any], dict[str, Any]]  # policy, communication

# Those of one group have the same ranks, so that one launch serves all of them.
AMONG_PEERS: Sequence[Kind] = (
    ({"kind": "synchronous"}, RING),
    ({"kind": "local_sgd", "period": 4}, RING),
    ({"kind": "ddp", "bucket": "256 KiB", "first_bucket": "256 KiB"}, RING),
)
WITH_SERVER: Sequence[Kind] = (
    ({"kind": "synchronous"}, SERVER),
    ({"kind": "backup", "backups": 1}, SERVER),
    ({"kind": "backup", "backups": 1, "cancel": True}, SERVER),
    ({"kind": "stale_synchronous", "staleness": 2}, SERVER),
    ({"kind": "asynchronous"}, SERVER),
    ({"kind": "flexrr", "group": 1}, SERVER),
)
GROUPS = (AMONG_PEERS, WITH_SERVER)


@dataclass(frozen=True)
class Links:
    """What carries gradients of this size; bandwidth None: the machine's own loopback."""

    gradient: str
    bandwidth: str | None = None

    @property
    def name(self) -> str:
        """For tables.

        >>> Links("1 MiB", "200 Mbit/s").name
        'emulated 200 Mbit/s, 1 MiB'
        """
        return f"{f'emulated {self.bandwidth}' if self.bandwidth else 'loopback'}, {self.gradient}"


LINKS = (Links("4 MiB"), Links("4 MiB", "1 Gbit/s"), Links("1 MiB", "200 Mbit/s"))


@dataclass(frozen=True)
class Row:
    """One policy over these links: its comparison, errors in percent of the measurement."""

    links: Links
    policy: str
    communication: str
    found: Comparison

    def as_dict(self) -> dict[str, Any]:
        """Plain values; staleness and dropped gradients as (predicted, measured)."""
        ours, theirs, errors = self.found.predicted, self.found.measured, self.found.error_pct
        return {
            "links": self.links.name,
            "policy": self.policy,
            "communication": self.communication,
            "step_median_pct": errors.step_median,
            "total_pct": errors.total,
            "mean_staleness": [ours.mean_staleness, theirs.mean_staleness],
            "dropped_gradients": [ours.dropped_gradients, theirs.dropped_gradients],
        }


@dataclass(frozen=True)
class Missing:
    """One policy over these links that was not measured, and why: InputError where it could not even start."""

    links: Links
    policy: str
    communication: str
    error: InputError | RunError

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "links": self.links.name,
            "policy": self.policy,
            "communication": self.communication,
            "error": str(self.error),
        }


def scenario_of(kind: Kind, links: Links) -> Scenario:
    """One policy over these links: `WORKERS` workers, `STEPS` steps.

    >>> scenario_of(({"kind": "asynchronous"}, {"kind": "parameter_server"}), Links("1 MiB", "200 Mbit/s")).hosts
    5
    """
    policy, communication = kind
    return Scenario.of(
        {
            "name": " ".join(str(value) for value in (*policy.values(), communication["kind"])),
            "steps": STEPS,
            "seed": SEED,
            "cluster": {"workers": WORKERS, "bandwidth": links.bandwidth or "10 Gbit/s", "latency": "0 s"},
            "compute": COMPUTE,
            "workload": {"gradient": links.gradient, "batch": 32, "layers": 4},
            "policy": policy,
            "communication": communication,
        }
    )


def runs(scenarios: Sequence[Scenario], *, emulate: bool) -> Iterator[tuple[Trace, Trace]]:
    """Predicted and measured, of scenarios with the same ranks; emulated ones in one launch.

    Raises what `measure_all` raises.
    """
    if emulate:
        for scenario, measured in zip(scenarios, measure_all(scenarios, emulate=True), strict=True):
            yield predict_emulated(scenario, measured.metadata), measured
    else:
        for scenario in scenarios:
            found = predict_and_measure(scenario)
            yield found.predicted, found.measured


def rows(links: Iterable[Links] = LINKS, progress: Callable[[int, int], None] | None = None) -> list[Row | Missing]:
    """All policies over all of these links, measured now: minutes. progress: called with (rows done, rows in all).

    Whether links can be emulated here is asked before the first run. What cannot run, or failed, is a `Missing`.
    """
    places = list(links)
    refusal = _refusal(places)
    total = len(places) * sum(map(len, GROUPS))
    found: list[Row | Missing] = []
    for place in places:
        for group in GROUPS:
            scenarios = [scenario_of(kind, place) for kind in group]
            refused = refusal if place.bandwidth is not None else None
            for row in _missing(place, scenarios, refused) if refused else _measured(place, scenarios):
                found.append(row)
                if progress is not None:
                    progress(len(found), total)
    return found


def _refusal(places: Sequence[Links]) -> InputError | None:
    """Why links cannot be emulated here, if any are to be; those of one scenario are as good as all."""
    emulated = next((place for place in places if place.bandwidth is not None), None)
    if emulated is not None:
        try:
            trial.check(NetworkPlan.of(scenario_of(WITH_SERVER[0], emulated)))
        except InputError as error:
            return error
    return None


def _measured(place: Links, scenarios: Sequence[Scenario]) -> Iterator[Row | Missing]:
    """A row for each. Where a launch fails, those that were still to come from it are missing."""
    emulate = place.bandwidth is not None
    for together in [scenarios] if emulate else [[scenario] for scenario in scenarios]:
        done = 0
        try:
            for predicted, measured in runs(together, emulate=emulate):
                yield Row(place, *_names(measured.scenario), compare(predicted, measured))
                done += 1
        except (InputError, RunError) as error:
            yield from _missing(place, together[done:], error)


def _missing(place: Links, scenarios: Sequence[Scenario], error: InputError | RunError) -> list[Missing]:
    return [Missing(place, *_names(scenario), error) for scenario in scenarios]


def _names(scenario: Scenario) -> tuple[str, str]:
    """Of its policy and its communication."""
    cancelling = "cancelling " if getattr(scenario.policy, "cancel", False) else ""
    return f"{cancelling}{scenario.policy.kind}", scenario.communication.kind
