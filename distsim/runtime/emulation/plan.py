"""The plan of an emulated cluster: hosts, the ranks on each, the bandwidths of their NICs, and the latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from distsim.errors import InputError, NotAvailableYetError

if TYPE_CHECKING:
    from distsim.scenario import Scenario


@dataclass(frozen=True)
class Host:
    """One host. ranks: the ranks on the host. up, down: payload bytes per second that its NIC sends and receives."""

    ranks: tuple[int, ...]
    up_bytes_per_second: float
    down_bytes_per_second: float


@dataclass(frozen=True)
class NetworkPlan:
    """Hosts around one switch, which limits nothing.

    latency_seconds: from one NIC to another, in one direction. alike: whether all hosts do the same work at
    the same time. Then no host gains by a core that another leaves idle.

    >>> from distsim.examples import example
    >>> plan = NetworkPlan.of(example("backup_server"))
    >>> len(plan.hosts), plan.hosts[5].ranks, plan.slowest_bytes_per_second
    (6, (5,), 1250000000.0)
    """

    hosts: tuple[Host, ...]
    latency_seconds: float
    alike: bool = False

    @classmethod
    def of(cls, scenario: Scenario) -> NetworkPlan:
        """The plan of a scenario's cluster. Raises NotAvailableYetError where it has a fast tier inside nodes."""
        cluster, servers = scenario.cluster, scenario.servers
        if cluster.nodes is not None:
            raise NotAvailableYetError.of(
                "--emulate with cluster.nodes",
                cluster.nodes.model_dump(by_alias=True, exclude_none=True),
                "the emulated cluster has no fast tier inside a node",
                "remove nodes from [cluster], or simulate it",
            )
        # Colocated servers are on the hosts of the first workers.
        homes = range(len(servers)) if scenario.communication.colocated else servers
        ranks: dict[int, list[int]] = {worker: [worker] for worker in range(cluster.workers)}
        for server, home in zip(servers, homes, strict=True):
            ranks.setdefault(home, []).append(server)
        hosts = tuple(Host(tuple(here), cluster.up(home), cluster.down(home)) for home, here in ranks.items())
        alike = not servers and scenario.policy.kind != "pipeline"
        return cls(hosts, cluster.latency_seconds, alike)

    @classmethod
    def of_launch(cls, scenarios: Sequence[Scenario]) -> NetworkPlan:
        """The one network on which all scenarios of a launch run. Raises InputError where their links differ."""
        plans = [*map(cls.of, scenarios)]
        plan = replace(plans[0], alike=all(one.alike for one in plans))
        if any(replace(one, alike=plan.alike) != plan for one in plans):
            raise InputError(
                "scenarios emulated in one launch have different links, and a launch has one network. "
                "Cure: measure them one by one"
            )
        return plan

    @classmethod
    def of_table(cls, table: dict[str, Any]) -> NetworkPlan:
        """The plan that `table` wrote."""
        hosts = (Host(**host | {"ranks": tuple(host["ranks"])}) for host in table["hosts"])
        return cls(tuple(hosts), table["latency_seconds"], table["alike"])

    def table(self) -> dict[str, Any]:
        """The plan in values that JSON can hold."""
        return asdict(self)

    def home_of(self, rank: int) -> int:
        """The number of the host that `rank` runs on."""
        return next(number for number, host in enumerate(self.hosts) if rank in host.ranks)

    def has_room(self, cores: int) -> bool:
        """Whether there is a core for each rank, if all hosts have equally many cores.

        >>> NetworkPlan((Host((0, 2), 125e6, 125e6), Host((1,), 125e6, 125e6)), 0.0).has_room(3)
        False
        """
        return len(self.hosts) * max(len(host.ranks) for host in self.hosts) <= cores

    def cores_of_hosts(self, usable: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The cores of each host. Empty where all hosts share all cores.

        Each host has its equal share of the usable cores, if there is room. Otherwise each host has one core, if hosts
        are alike and no core would have more of them than another.

        >>> host = Host((0,), 125e6, 125e6)
        >>> NetworkPlan((host,) * 2, 0.0).cores_of_hosts(range(5))
        ((0, 2), (1, 3))
        >>> NetworkPlan((host,) * 4, 0.0, alike=True).cores_of_hosts(range(2))
        ((0,), (1,), (0,), (1,))
        >>> NetworkPlan((host,) * 4, 0.0).cores_of_hosts(range(2))
        ()
        """
        hosts, count = len(self.hosts), len(usable)
        if self.has_room(count):
            return tuple(tuple(usable[host : count - count % hosts : hosts]) for host in range(hosts))
        return tuple((usable[host % count],) for host in range(hosts)) if self.alike and hosts % count == 0 else ()

    @property
    def slowest_bytes_per_second(self) -> float:
        """The rate of the slowest link."""
        return min(min(host.up_bytes_per_second, host.down_bytes_per_second) for host in self.hosts)

    @property
    def fastest_bytes_per_second(self) -> float:
        """The rate of the fastest link."""
        return max(max(host.up_bytes_per_second, host.down_bytes_per_second) for host in self.hosts)
