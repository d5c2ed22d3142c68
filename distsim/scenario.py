"""A scenario describes a run completely: cluster, compute, workload, policy, communication, steps and seed.

A scenario is a TOML file, and a frozen, validated object in Python. Simulation and real run take the same scenario.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import Field, PlainSerializer, PlainValidator, ValidationError, ValidationInfo, model_validator

from distsim import files, toml, trace_size
from distsim.cluster import Cluster
from distsim.collective_times.call_site import CallSite
from distsim.collectives import ALL_REDUCES, Collective, Schedule, Topology
from distsim.communication import Communication
from distsim.compute import Compute, ComputeTimes
from distsim.errors import InputError
from distsim.failures import Cost, Failures
from distsim.groups import ALL_REDUCE, GroupExchange
from distsim.policies import Policy, Programmed, WithServer, read_policy, whole_policy, write_policy
from distsim.scenario_errors import explain
from distsim.validated_table import LARGEST_NAME, Count, ValidatedTable
from distsim.workload import Workload

LARGEST_MEGABYTES = 1  # of a scenario's file
SERVER = {True: "required", False: "none"}  # has_servers of a collective, as policies put it


class Scenario(ValidatedTable):
    """One scenario; `load`, `loads` and `of` read a scenario and raise `InputError` if it is wrong.

    >>> scenario = Scenario.loads('''
    ... steps = 50
    ... seed = 7
    ... cluster = { workers = 5, bandwidth = "1 Gbit/s", latency = "100 us" }
    ... compute = { distribution = "lognormal", mean = "50 ms", cv = 0.3 }
    ... workload = { gradient = "4 MiB", batch = 32 }
    ... policy = { kind = "backup", backups = 1 }
    ... communication = { kind = "parameter_server" }
    ... ''')
    >>> scenario.policy
    Backup(backups=1, cancel=False)
    >>> Scenario.loads(scenario.dumps()) == scenario
    True
    """

    name: Annotated[str, Field(max_length=LARGEST_NAME)] = "scenario"
    steps: Annotated[Count, Field(examples=[50])]
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    cluster: Cluster = Field(examples=[{"workers": 4, "bandwidth": "10 Gbit/s", "latency": "50 us"}])
    compute: Compute = Field(examples=[{"mean": "50 ms"}])
    workload: Workload = Field(examples=[{"gradient": "4 MiB"}])
    policy: Annotated[
        Policy,
        PlainValidator(read_policy),
        PlainSerializer(write_policy),
        Field(examples=[{"kind": "synchronous"}]),
    ]
    communication: Communication = Field(examples=[{"kind": "parameter_server"}])
    failures: Failures | None = None
    cost: Cost | None = None

    @model_validator(mode="before")
    @classmethod
    def _nothing_drawn(cls, table: Any) -> Any:
        """Sets the drawn time to 0 where a model or a profile computes, and the table says nothing of a time."""
        if not isinstance(table, dict) or not isinstance(table.get("workload"), dict):
            return table
        compute = table.get("compute", {})
        if not {"model", "profile"} & table["workload"].keys() or not isinstance(compute, dict):
            return table
        if {"distribution", "mean", "fixed", "per_sample"} & compute.keys():
            return table
        return table | {"compute": compute | {"mean": "0 s"}}

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Scenario:
        self.cluster.check_nics()
        recorded = (info.context or {}).get("recorded", False)
        self.compute.check_workers(self.cluster.workers)
        self.policy.check_workers(self.cluster.workers)
        self.policy.check_steps(self.steps)
        if (model := self.workload.profile.model if self.workload.profile else self.workload.model) is not None:
            self.policy.check_model(model)
        self._check_workload()
        if not self.unprofiled:
            self.policy.check_workload(self.workload, self.cluster.workers)
        self._check_communication()
        if not recorded and not self.unprofiled:
            trace_size.check(self)
        return self

    def _check_workload(self) -> None:
        if self.compute.mean_seconds == 0.0 and not self.workload.computes:
            raise ValueError(
                "compute.mean = '0 s' must be above 0 where neither a model nor a profile computes. "
                'Cure: write mean = "50 ms"'
            )
        if self.unprofiled:
            return
        if self.workload.num_bytes is None and self.policy.all_reduces:
            raise ValueError('workload.gradient is missing. Cure: write gradient = "4 MiB" in [workload], or a model')
        if self.workload.handed_on_bytes is None and self.policy.hands_on and self.cluster.workers > 1:
            raise ValueError(
                "workload.activation is missing: it is what one stage of a pipeline, or one block of tensor parallel "
                'training or of a mesh, hands on for a batch. Cure: write activation = "1 MiB" in [workload]'
            )

    def _check_communication(self) -> None:
        communication, policy = self.communication, self.policy
        if self.collective not in self.possible_collectives:
            raise ValueError(
                f"communication.kind = {communication.kind!r} makes no sense with policy.kind = {policy.kind!r}. "
                f"Cure: take {' or '.join(row.kind for row in self.possible_collectives)}"
            )
        nodes, workers = self.cluster.nodes, self.cluster.workers
        if self.collective.needs_nodes and nodes is None:
            raise ValueError(
                f"communication.kind = {communication.kind!r} needs nodes with a fast tier. "
                'Cure: write nodes = { per_node = 4, bandwidth = "300 GB/s", latency = "2 us" } in [cluster]'
            )
        if self.collective.needs_nodes and nodes is not None and workers % nodes.per_node:
            raise ValueError(
                f"cluster.nodes.per_node = {nodes.per_node} must divide the {workers} workers with "
                f"communication.kind = {communication.kind!r}. Cure: fill every node with workers"
            )
        if self.collective.has_servers:
            self._check_servers()
            return
        for key, value, default in (
            ("receive", communication.receive, None),
            ("servers", communication.servers, 1),
            ("colocated", communication.colocated, False),
        ):
            if value != default:
                raise ValueError(
                    f"communication.{key} = {value!r} is about servers, and kind = {communication.kind!r} has none. "
                    f'Cure: remove {key}, or write kind = "parameter_server"'
                )
        if "server" in self.cluster.nic:
            raise ValueError(
                f"cluster.nic names the server, and communication.kind = {communication.kind!r} has none. "
                'Cure: remove it, or write kind = "parameter_server"'
            )

    def _check_servers(self) -> None:
        communication, policy = self.communication, self.policy
        if communication.servers > 1 and (policy.single_server or getattr(policy, "cancel", False)):
            which = f"{policy.kind!r} and cancel = true" if policy.kind == "backup" else repr(policy.kind)
            raise ValueError(
                f"communication.servers = {communication.servers} makes no sense with policy.kind = {which}, "
                "which has one server. Cure: write servers = 1"
            )
        if communication.colocated and communication.servers > self.cluster.workers:
            raise ValueError(
                f"communication.servers = {communication.servers} must be at most the {self.cluster.workers} workers "
                "if colocated. Cure: use fewer servers, or hosts of their own"
            )
        if communication.colocated and "server" in self.cluster.nic:
            raise ValueError(
                "cluster.nic names the server, but colocated servers use their workers' NICs. "
                "Cure: name the worker, or write colocated = false"
            )

    @property
    def gradient_bytes(self) -> float:
        """Bytes of one gradient, and of the parameters."""
        num_bytes = self.workload.num_bytes
        assert num_bytes is not None, "checked when the scenario was read"
        return num_bytes

    @property
    def unprofiled(self) -> bool:
        """Whether the model is the user's own, and no profile tells its sizes and times: such a run is measured."""
        return self.workload.own_model and self.workload.profile is None

    @property
    def samples_per_step(self) -> int:
        """The samples that all workers together compute on in one step of each."""
        return self.workload.batch * self.policy.batches(self.cluster.workers)

    @property
    def receive(self) -> str:
        """How a server takes pushes: the scenario's setting, or else the policy's default."""
        return self.communication.receive or self.policy.receive

    @property
    def servers(self) -> tuple[int, ...]:
        """The ranks of the parameter servers: workers count 0 to W - 1, servers from W."""
        if not self.collective.has_servers:
            return ()
        return tuple(range(self.cluster.workers, self.cluster.workers + self.communication.servers))

    @property
    def server_decides(self) -> bool:
        """Whether servers make the updates by the policy's rule. Otherwise servers at most follow a schedule."""
        return bool(self.servers) and isinstance(self.policy, WithServer)

    @property
    def follows_schedule(self) -> bool:
        """Whether the collectives of a real run follow our schedules, and not the back end's own.

        The back end has no parameter servers, and its own reduce-scatter need not be a ring.
        """
        by_schedule = self.communication.implementation == "schedule" or self.collective.has_servers
        return by_schedule or isinstance(self.policy, Programmed)

    def host(self, rank: int) -> int:
        """The host of a rank: a host of its own, or for a colocated server a worker's host."""
        return rank - self.cluster.workers if self.communication.colocated and rank >= self.cluster.workers else rank

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return self.cluster.workers if self.communication.colocated else self.ranks

    @property
    def collective(self) -> Collective:
        """The collective of this scenario, a row of the table."""
        return self.communication.collective()

    @property
    def possible_collectives(self) -> list[Collective]:
        """The collectives that make sense with the policy."""
        policy = self.policy
        return [
            row
            for row in ALL_REDUCES.values()
            if policy.server in ("possible", SERVER[row.has_servers]) and policy.takes(row.kind)
        ]

    @property
    def topology(self) -> Topology:
        """The hosts on which the collective runs."""
        return CallSite.of(self.cluster, self.communication).topology

    def schedule(self, exchange: GroupExchange = ALL_REDUCE) -> Schedule:
        """The all-reduce or other exchange of this scenario, as data.

        Raises InputError if the schedule would not fit in memory.
        """
        trace_size.check_schedule(self, exchange)
        site = CallSite.of(self.cluster, self.communication, exchange)
        return site.collective.schedule(site.topology)

    @property
    def ranks(self) -> int:
        """How many processes a real run has: workers and servers."""
        return self.cluster.workers + len(self.servers)

    def compute_times(self) -> ComputeTimes:
        """The seeded seconds of every worker's work: the same draws in simulation and real run."""
        return ComputeTimes(self.compute, self.seed, self.workload.batch, alone=self.cluster.workers == 1)

    def simulated_times(self) -> ComputeTimes:
        """The seconds of every worker's whole steps in a simulation: the drawn seconds, and those of a profile.

        Where servers decide, they do the optimizer's work.
        """
        profile = self.workload.profile
        if profile is None:
            return self.compute_times()
        own = profile.step_seconds - (profile.optimizer_seconds if self.server_decides else 0.0)
        whole = self.compute.model_copy(update={"added_seconds": self.compute.added_seconds + own})
        return ComputeTimes(whole, self.seed, self.workload.batch, alone=self.cluster.workers == 1)

    @classmethod
    def of(
        cls, table: dict[str, Any], source: str = "scenario", folder: Path | None = None, *, recorded: bool = False
    ) -> Scenario:
        """The scenario of a table as TOML would give it; `folder` has its files (default: the current one).

        recorded: the scenario was run already, maybe on another machine, so its files may be missing.
        """
        try:
            return cls.model_validate(table, context={"folder": folder or Path(), "recorded": recorded})
        except ValidationError as error:
            raise explain(error, cls, source) from None

    @classmethod
    def loads(cls, text: str, source: str = "scenario", folder: Path | None = None) -> Scenario:
        """The scenario written in `text`, TOML."""
        table = toml.read(text, source)
        if not table:
            raise InputError(
                f"{source} = {text[:40]!r} is empty: a scenario needs steps and the tables [cluster], [compute], "
                "[workload], [policy] and [communication]. Cure: start from a file in distsim/examples"
            )
        return cls.of(table, source, folder)

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """The scenario in the file `path`; the file's name is the default of its name."""
        path = Path(path)
        try:
            text = files.read(path, LARGEST_MEGABYTES).decode("utf-8-sig")
        except OSError as error:
            raise InputError(
                f"scenario file = {str(path)!r}: cannot be read ({error.strerror}). Cure: give the path of a TOML file"
            ) from None
        except UnicodeDecodeError as error:
            raise InputError(
                f"scenario file = {str(path)!r}: is not a text file (byte {error.start} is not UTF-8). "
                "Cure: give the path of a TOML file"
            ) from None
        scenario = cls.loads(text, source=str(path), folder=path.parent)
        if "name" in scenario.model_fields_set:
            return scenario
        return scenario.model_copy(update={"name": path.stem})

    def table(self) -> dict[str, Any]:
        """The scenario as `of` takes it: quantities as text with units, defaults left out."""
        table = self.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
        table["cluster"] |= {"nic": {str(host): nic for host, nic in table["cluster"].get("nic", {}).items()}}
        table["compute"] |= {"slow": {str(host): factor for host, factor in table["compute"].get("slow", {}).items()}}
        for name, key in (("cluster", "nic"), ("compute", "slow")):
            if not table[name][key]:
                del table[name][key]
        return table

    def settings(self) -> dict[str, Any]:
        """Every key of the file with its value, defaults too, such as {"steps": 50, "cluster.workers": 4, …}.

        Keys are in the order of a file; files are given without their folder, and a profile by its model.
        """
        table = self.model_dump(by_alias=True) | {"policy": whole_policy(self.policy)}
        table["communication"]["receive"] = self.receive if self.servers else None
        if self.compute.file is not None:
            table["compute"]["file"] = Path(self.compute.file).name
        if self.workload.own_model:
            table["workload"]["model"] = Path(str(self.workload.model)).name
        if self.workload.profile is not None:
            table["workload"]["profile"] = self.workload.profile.model
        return dict(_flat(table))

    def dumps(self) -> str:
        """The scenario as TOML; `loads` reads back an equal one."""
        return tomli_w.dumps(self.table())

    def replacing(self, changes: dict[str, Any]) -> Scenario:
        """A copy with some keys of the file changed, validated anew.

        >>> from distsim.examples import example
        >>> example("backup_server").replacing({"policy.backups": 2, "cluster.bandwidth": "200 Mbit/s"}).policy.backups
        2
        """
        table = self.table()
        for path, value in changes.items():
            *tables, key = path.split(".")
            inner = table
            for name in tables:
                inner = inner.setdefault(name, {})
            inner[key] = value
        return type(self).of(table, source=with_changes(changes))


def with_changes(changes: dict[str, Any]) -> str:
    """The name in messages of a scenario with changed keys.

    >>> with_changes({"steps": 0})
    'scenario with steps = 0'
    """
    return "scenario with " + ", ".join(f"{key} = {value!r}" for key, value in changes.items())


def check_scenario(given: object) -> None:
    """Raises InputError if `given` is not a Scenario, for example the path of a file.

    >>> check_scenario("run.toml")
    Traceback (most recent call last):
    ...
    distsim.errors.InputError: scenario = 'run.toml': is no Scenario. Cure: read it by Scenario.load, loads or of
    """
    if not isinstance(given, Scenario):
        raise InputError.of("scenario", given, "is no Scenario", "read it by Scenario.load, loads or of")


def _flat(table: dict[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
