"""How well real runs on this machine are predicted: a row for each policy with whole models over each of several links.

Loopback links are the machine's own; a calibration just before each run measures them. Emulated links are imposed, so
the prediction uses the scenario's links, and only the times that the launch measured before the run
(`predict_emulated`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from distsim.comparison import Comparison, compare
from distsim.errors import InputError, RunError
from distsim.experiment import predict_and_measure, predict_emulated
from distsim.policies import POLICIES, WithServer, smallest_table
from distsim.progress import Phase, Report
from distsim.runtime.emulation import trial
from distsim.runtime.emulation.plan import NetworkPlan
from distsim.runtime.measure import measure_all
from distsim.scenario import Scenario
from distsim.trace import Trace

WORKERS, STEPS, SEED = 4, 16, 11
COMPUTE = {"distribution": "lognormal", "mean": "50 ms", "cv": 0.3}
RING, SERVER = {"kind": "ring"}, {"kind": "parameter_server"}
Combination = tuple[dict[str, Any], dict[str, Any]]  # the tables [policy] and [communication]

# The scenarios of one group have the same ranks, so one launch runs all of them.
AMONG_PEERS: Sequence[Combination] = (
    ({"kind": "synchronous"}, RING),
    ({"kind": "local_sgd", "period": 4}, RING),
    ({"kind": "ddp", "bucket": "256 KiB", "first_bucket": "256 KiB"}, RING),
)
_WITH_SERVER: Sequence[Combination] = (
    ({"kind": "synchronous"}, SERVER),
    ({"kind": "backup", "backups": 1}, SERVER),
    ({"kind": "backup", "backups": 1, "cancel": True}, SERVER),
    ({"kind": "stale_synchronous", "staleness": 2}, SERVER),
    ({"kind": "asynchronous"}, SERVER),
    ({"kind": "flexrr", "group": 1}, SERVER),
)
_LISTED = {policy["kind"] for policy, _ in _WITH_SERVER}
_OTHERS = [kind for kind, policy in POLICIES.items() if issubclass(policy, WithServer) and kind not in _LISTED]
WITH_SERVER = (*_WITH_SERVER, *((smallest_table(kind), SERVER) for kind in _OTHERS))
GROUPS = (AMONG_PEERS, WITH_SERVER)


@dataclass(frozen=True)
class Links:
    """The links of a run, and the size of its gradients. bandwidth: of emulated links; None: the machine's own."""

    gradient: str
    bandwidth: str | None = None

    @property
    def name(self) -> str:
        """The name in tables.

        >>> Links("1 MiB", "200 Mbit/s").name
        'emulated 200 Mbit/s, 1 MiB'
        """
        return f"{f'emulated {self.bandwidth}' if self.bandwidth else 'loopback'}, {self.gradient}"


LINKS = (Links("4 MiB"), Links("4 MiB", "1 Gbit/s"), Links("1 MiB", "200 Mbit/s"))


@dataclass(frozen=True)
class Place:
    """Where a row stands in the table: one policy over these links."""

    links: Links
    policy: str
    communication: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"links": self.links.name, "policy": self.policy, "communication": self.communication}


@dataclass(frozen=True)
class Row(Place):
    """A measured row, with the comparison of its two runs."""

    found: Comparison

    def as_dict(self) -> dict[str, Any]:
        """Plain values: errors in percent, as `comparison.Error` holds them; counts as [predicted, measured]."""
        ours, theirs, errors = self.found.predicted, self.found.measured, self.found.error_pct
        return super().as_dict() | {
            "step_median_pct": errors.step_median,
            "total_pct": errors.total,
            "mean_staleness": [ours.mean_staleness, theirs.mean_staleness],
            "dropped_gradients": [ours.dropped_gradients, theirs.dropped_gradients],
        }


@dataclass(frozen=True)
class Missing(Place):
    """A row that was not measured. error: InputError where the run could not start."""

    error: InputError | RunError

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return super().as_dict() | {"error": str(self.error)}


def scenario_of(combination: Combination, links: Links) -> Scenario:
    """The scenario of one policy over these links: `WORKERS` workers, `STEPS` steps.

    >>> scenario_of(({"kind": "asynchronous"}, {"kind": "parameter_server"}), Links("1 MiB", "200 Mbit/s")).hosts
    5
    """
    policy, communication = combination
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
    """The predicted and the measured run of each scenario; all have the same ranks. One launch runs all emulated ones.

    Raises the errors of `measure_all`.
    """
    if emulate:
        for scenario, measured in zip(scenarios, measure_all(scenarios, emulate=True), strict=True):
            yield predict_emulated(scenario, measured.metadata), measured
    else:
        for scenario in scenarios:
            found = predict_and_measure(scenario)
            yield found.predicted, found.measured


def rows(links: Iterable[Links] = LINKS, progress: Report | None = None) -> list[Row | Missing]:
    """Measures all policies over all of these links, which takes minutes. progress: called with the
    `Phase`, which counts rows.

    The right to emulate links is checked before the first run. A run that cannot start, or fails, becomes a `Missing`.
    """
    all_links = list(links)
    refusal = _refusal(all_links)
    total = len(all_links) * sum(map(len, GROUPS))
    found: list[Row | Missing] = []
    for one in all_links:
        for group in GROUPS:
            scenarios = [scenario_of(combination, one) for combination in group]
            refused = refusal if one.bandwidth is not None else None
            for row in _missing(one, scenarios, refused) if refused else _measured(one, scenarios):
                found.append(row)
                if progress is not None:
                    progress(Phase.counted("row", len(found), total))
    return found


def _refusal(all_links: Sequence[Links]) -> InputError | None:
    """Why links cannot be emulated here; None where they can, or need not. Trying one scenario is enough."""
    emulated = next((one for one in all_links if one.bandwidth is not None), None)
    if emulated is not None:
        try:
            trial.check(NetworkPlan.of(scenario_of(WITH_SERVER[0], emulated)))
        except InputError as error:
            return error
    return None


def _measured(links: Links, scenarios: Sequence[Scenario]) -> Iterator[Row | Missing]:
    """A row for each scenario. Where a launch fails, the rows that it has not delivered are missing."""
    emulate = links.bandwidth is not None
    for together in [scenarios] if emulate else [[scenario] for scenario in scenarios]:
        done = 0
        try:
            for predicted, measured in runs(together, emulate=emulate):
                yield Row(links, *_names(measured.scenario), compare(predicted, measured))
                done += 1
        except (InputError, RunError) as error:
            yield from _missing(links, together[done:], error)


def _missing(links: Links, scenarios: Sequence[Scenario], error: InputError | RunError) -> list[Missing]:
    return [Missing(links, *_names(scenario), error) for scenario in scenarios]


def _names(scenario: Scenario) -> tuple[str, str]:
    """The names of the scenario's policy and communication."""
    cancelling = "cancelling " if getattr(scenario.policy, "cancel", False) else ""
    return f"{cancelling}{scenario.policy.kind}", scenario.communication.kind
