"""Builds a plan in the kernel: a bridge, and for each host a pair of virtual NICs with a shaper at either end.

    host 0 [eth0] --up-->   [port0]  switch  [port1]   <--up-- [eth0] host 1
                  <--down--         (bridge)          --down-->

Each end shapes what it sends: eth0 the host's up-link, the port of the switch the host's down-link. The port adds
the latency before its shaper, where the kernel can do that.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from distsim.runtime.emulation import namespaces, shaping
from distsim.runtime.emulation.iproute import Iproute, refusal
from distsim.runtime.emulation.plan import Host, NetworkPlan

SUBNET = IPv4Network("10.0.0.0/16")
SWITCH_ADDRESS = str(SUBNET[-2])
NIC = "eth0"  # of every host


@dataclass(frozen=True)
class Network:
    """A network that has been built. The kernel removes it with the last process that is in it.

    hosts: a path for each host, for `namespaces.enter_path`. latency_imposed: whether the kernel adds the plan's
    latency. right: the right by which this process could build the network. grain: how finely the links cut time.
    cores: those of each host; empty where all hosts share all cores.
    """

    hosts: tuple[str, ...]
    latency_imposed: bool
    right: str
    grain: shaping.Grain
    cores: tuple[tuple[int, ...], ...]


def address_of(host: int) -> str:
    """The address of host number `host` of a plan.

    >>> address_of(0)
    '10.0.0.1'
    """
    return str(SUBNET[host + 1])


def build(plan: NetworkPlan) -> Network:
    """Builds `plan` around a switch. From then on this process stays in the switch.

    Raises InputError where the machine or this process's rights do not allow it. The kernel removes unfinished parts
    with the process.
    """
    tools = Iproute.found()
    try:
        right = namespaces.leave_the_machines()
        return _built(plan, tools, right)
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        raise refusal(f"needs the right to make network namespaces ({said})") from None


def _built(plan: NetworkPlan, tools: Iproute, right: str) -> Network:
    switch = namespaces.here()
    tools.ip(
        "link set lo up",
        f"link add name switch mtu {shaping.MTU_BYTES} type bridge",
        f"address add {SWITCH_ADDRESS}/{SUBNET.prefixlen} dev switch",
        "link set switch up",
    )
    delays = plan.latency_seconds > 0 and tools.kernel_delays()
    window = shaping.window(plan.fastest_bytes_per_second, plan.latency_seconds if delays else 0.0)
    usable = sorted(os.sched_getaffinity(0))
    grain = shaping.FINE if plan.has_room(len(usable)) else shaping.COARSE
    hosts, addresses = [], [address_of(number) for number in range(len(plan.hosts))]
    for number, host in enumerate(plan.hosts):
        hosts.append(namespaces.fresh())
        _host(tools, host, number, addresses, namespaces.path(switch), window, grain)
        namespaces.enter(switch)
        _port(tools, host, number, addresses, plan.latency_seconds if delays else 0.0, grain)
    latency_imposed = delays or plan.latency_seconds == 0
    paths, cores = tuple(map(namespaces.path, hosts)), plan.cores_of_hosts(usable)
    return Network(paths, latency_imposed, right, grain, cores)


def _host(
    tools: Iproute,
    host: Host,
    number: int,
    addresses: list[str],
    switch: str,
    window: shaping.Window,
    grain: shaping.Grain,
) -> None:
    """Sets up the host's own NIC, from inside the host."""
    up = shaping.up_link(host.up_bytes_per_second, grain)
    far_end = f"port{number} mtu {shaping.MTU_BYTES} netns {switch}"
    for sockets in ("tcp_rmem", "tcp_wmem"):
        Path("/proc/sys/net/ipv4", sockets).write_text(f"4096 {window.buffer_bytes} {window.buffer_bytes}", "ascii")
    tools.ip(
        "link set lo up",
        f"link add name {NIC} mtu {shaping.MTU_BYTES} type veth peer name {far_end}",
        f"link set {NIC} gso_max_size {up.largest_packet_bytes}",
        f"address add {addresses[number]}/{SUBNET.prefixlen} dev {NIC}",
        f"link set {NIC} up",
        f"route replace {SUBNET} dev {NIC} {window.route}",
    )
    tools.tc(*up.commands(NIC, "dst", addresses))


def _port(
    tools: Iproute, host: Host, number: int, addresses: list[str], latency_seconds: float, grain: shaping.Grain
) -> None:
    """Sets up the host's port of the switch, from inside the switch."""
    down = shaping.down_link(host.down_bytes_per_second, grain)
    tools.ip(f"link set port{number} master switch up")
    tools.tc(*down.commands(f"port{number}", "src", addresses, latency_seconds))
