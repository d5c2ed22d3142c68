"""An entry: a folder with entry.toml, and with a rule or a schedule of one's own if it has one.

prediction = "21 s"          # of the mean time to the target
rate = 0.5                   # the learning rate
rule = "rule.py:Mine"        # optional: decides in place of the policy
schedule = "schedule.toml"   # optional: sums in place of the collective

[policy]                     # both as in a scenario
kind = "backup"
backups = 1

[communication]
kind = "parameter_server"
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from distsim.collectives import Schedule
from distsim.contest.problem import Problem, Rate, read_table
from distsim.contest.schedule_file import read_schedule
from distsim.errors import InputError
from distsim.files import printable
from distsim.policies import WithServer
from distsim.scenario import Scenario
from distsim.scenario_errors import explain
from distsim.simulation import check_decides, check_sums
from distsim.units import cure, parse
from distsim.validated_table import ValidatedTable

ENTRY = "entry.toml"
OWN = ("policy", "communication")  # the tables that an entry brings; all others are the problem's
TOGETHER = ("pipeline", "tensor", "mesh")
GIVEN = ("name", "steps", "seed", "cluster", "compute", "workload", "failures", "cost")


class _Written(ValidatedTable):
    rate: Rate = Field(examples=[0.5])
    policy: dict[str, Any] = Field(examples=[{"kind": "synchronous"}])
    communication: dict[str, Any] = Field(examples=[{"kind": "ring"}])
    prediction: str | None = None
    rule: str | None = None
    schedule: str | None = None


@dataclass(frozen=True)
class Entry:
    """An entry that may race. prediction_seconds: None for a reference. rule: "rule.py:Mine", in `folder`."""

    name: str
    folder: Path
    scenario: Scenario
    rate: float
    prediction_seconds: float | None
    rule: str | None = None
    schedule: Schedule | None = None

    @property
    def kind(self) -> str:
        """What the entry brings, in a word or two."""
        if self.rule is not None:
            return "own rule"
        return "own schedule" if self.schedule is not None else self.scenario.policy.kind

    @classmethod
    def at(cls, folder: Path, problem: Problem, *, predicts: bool = True) -> Entry:
        """The entry in a folder. predicts: whether it must predict its time.

        Raises InputError where the entry is wrong, changes what the problem gives, or is beyond the budget.
        """
        table = read_table(folder / ENTRY)
        if given := [key for key in GIVEN if key in table]:
            raise InputError(
                f"{ENTRY} changes {', '.join(given)}, which the contest gives to all alike. "
                f"Cure: keep to [policy], [communication], rate, rule and schedule"
            )
        try:
            written = _Written.model_validate(table)
        except ValidationError as error:
            raise explain(error, _Written, ENTRY) from None
        if (kind := written.policy.get("kind")) in TOGETHER:
            rule = "has workers that share a batch; in the contest each worker has its own"
            raise InputError.of("policy.kind", kind, rule, f"take none of {', '.join(TOGETHER)}")
        if written.policy.get("compression", 1.0) != 1.0:
            rule = "would change the gradients, which the race cannot count"
            raise InputError.of("policy.compression", written.policy["compression"], rule, "leave it out")
        scenario = problem.scenario.replacing({key: table[key] for key in OWN})
        entry = cls(
            printable(folder.name), folder, scenario, written.rate, _prediction(written.prediction, predicts=predicts),
            written.rule, _schedule(folder, written, scenario),
        )  # fmt: skip
        entry._check_budget(problem)
        entry._check_rule()
        return entry

    def _check_budget(self, problem: Problem) -> None:
        communication = self.scenario.communication
        servers = len(self.scenario.servers) if not communication.colocated else 0
        if (hosts := self.scenario.cluster.workers + servers) > problem.rules.most_hosts:
            raise InputError.of(
                "communication.servers", communication.servers,
                f"makes {hosts} hosts, and the budget has {problem.rules.most_hosts}",
                "take fewer servers, or write colocated = true",
            )  # fmt: skip

    def _check_rule(self) -> None:
        if self.rule is None:
            return
        check_decides(self.scenario)
        if not isinstance(self.scenario.policy, WithServer) or self.scenario.policy.kind == "flexrr":
            rule = "does its own bookkeeping, which no rule of yours can replace"
            raise InputError.of("policy.kind", self.scenario.policy.kind, rule, 'write kind = "asynchronous"')
        if len(self.scenario.servers) > 1:
            servers = self.scenario.communication.servers
            raise InputError.of("communication.servers", servers, "is too many for a rule", "write servers = 1")
        if self.schedule is not None:
            raise InputError.of("rule", self.rule, "stands beside a schedule", "hand in one of the two")
        file, _, name = self.rule.rpartition(":")
        if not name.isidentifier() or Path(file).name != file or not (self.folder / file).is_file():
            rule = "names no class in a file beside entry.toml"
            raise InputError.of("rule", self.rule, rule, 'write such as rule = "rule.py:Mine"')


def _prediction(text: str | None, *, predicts: bool) -> float | None:
    if text is None:
        if predicts:
            raise InputError(f'{ENTRY}: prediction is missing. Cure: write such as prediction = "21 s"')
        return None
    try:
        seconds = parse(text, "second")
    except ValueError as error:
        raise InputError.of("prediction", text, str(error), cure(error, 'write such as "21 s"')) from None
    if seconds <= 0.0:
        raise InputError.of("prediction", text, "must be above 0 s", 'write such as "21 s"')
    return seconds


def _schedule(folder: Path, written: _Written, scenario: Scenario) -> Schedule | None:
    if written.schedule is None:
        return None
    if Path(written.schedule).name != written.schedule:
        rule = "must be a file beside entry.toml"
        raise InputError.of("schedule", written.schedule, rule, 'write such as schedule = "schedule.toml"')
    found = read_schedule(folder / written.schedule, scenario.cluster.workers)
    check_sums(scenario, found)
    return found
