"""Agreement with SimGrid: recomputes the cases of a JSON file of SimGrid results and finds the largest difference.

The file's `meta` states the rules; each case names an algorithm, hosts, sizes, links and SimGrid's finish times. One
such file comes with the package. SimGrid's latency is per link and a path crosses two, so the latency from NIC to NIC
is twice the case's.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Generator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, ValidationError

from distsim import files
from distsim.accuracy.claim import EXACT
from distsim.cluster import Cluster
from distsim.collectives import parameter_server
from distsim.engine import collective
from distsim.engine.simulated_hosts import SimulatedHosts
from distsim.errors import InputError, shown
from distsim.progress import progress
from distsim.scenario import Scenario
from distsim.scenario_errors import findings
from distsim.simulation import simulate
from distsim.trace import SpanKind, Trace
from distsim.units import BOUNDS, write

Case = dict[str, Any]
Inputs = dict[str, str]
Rows = dict[str, dict[str, float | int | None]]

SHIPPED = resources.files(__package__).joinpath("simgrid_cases.json")
MOST_HOSTS = 4096
SLOW_SECONDS, MOST_SLOW = 1.0, 5  # a case that takes longer is named; so many are
MOMENT = 1e-9  # seconds; a scenario has to compute
LARGEST_MEGABYTES = 100  # of a file of cases


class Values(BaseModel):
    """The fields that a case must have, and the bounds within which a case can be recomputed."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    N: Annotated[int, Field(ge=1, le=MOST_HOSTS)]
    S_bytes: Annotated[float, Field(ge=0.0, le=BOUNDS["byte"][1])]
    B_bytes_per_s: Annotated[float, Field(ge=BOUNDS["byte/second"][0], le=BOUNDS["byte/second"][1])] | None
    L_s_per_link: Annotated[float, Field(ge=0.0, le=BOUNDS["second"][1] / 2)]
    input: str | None
    link_capacities: str | None
    makespan_s: Annotated[float, AllowInfNan(True)]
    finish_s: list[Annotated[float, AllowInfNan(True)]] | None = None


def validate(path: Path | Traversable = SHIPPED) -> dict[str, Any]:
    """`{"algorithms": {NAME: {"cases": n, "skipped": n, "max_relative_error": x}}, "slow": {CASE: seconds}}` of a file.

    An algorithm that cannot be simulated yet counts its cases as skipped; its error is None. slow: the slowest cases,
    the slowest first, of those that took longer than `SLOW_SECONDS`. Progress names the case that is computed now.
    Raises InputError if the file is not of that format.
    """
    document = read(path)
    algorithms: Rows = {}
    seconds: dict[str, float] = {}
    for case in progress(document["cases"], "SimGrid cases", name=_name):
        start = time.perf_counter()
        row = algorithms.setdefault(case["algorithm"], {"cases": 0, "skipped": 0, "max_relative_error": None})
        row["cases"] = int(row["cases"] or 0) + 1
        recompute = RECOMPUTE.get(case["algorithm"])
        if recompute is None:
            row["skipped"] = int(row["skipped"] or 0) + 1
            continue
        try:
            Values.model_validate(case)
            error = relative_error(case, recompute(case, document["inputs"]))
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            found = findings(problem) if isinstance(problem, ValidationError) else problem
            raise InputError.of(
                f"{path}: case {_name(case)}",
                case["algorithm"],
                f"lacks something, or has a value that no case has ({found})",
                "see the file's meta",
            ) from None
        row["max_relative_error"] = max(error, row["max_relative_error"] or 0.0)
        seconds[_name(case)] = time.perf_counter() - start
    slowest = sorted(seconds, key=lambda name: seconds[name], reverse=True)[:MOST_SLOW]
    return {"algorithms": algorithms, "slow": {name: seconds[name] for name in slowest if seconds[name] > SLOW_SECONDS}}


def _name(case: Case) -> str:
    return shown(case.get("case"))


def disagreeing(algorithms: Rows) -> list[str]:
    """The algorithms with a case that differs by more than `EXACT`."""
    return [name for name, row in algorithms.items() if (row["max_relative_error"] or 0.0) > EXACT]


def relative_error(case: Case, finish_seconds: list[float]) -> float:
    """The largest relative difference: of every rank or flow where the case gives them, and of the last to finish."""
    expected, found = [case["makespan_s"]], [max(finish_seconds)]
    if case.get("finish_s") is not None:
        expected += case["finish_s"]
        found += finish_seconds[: len(case["finish_s"])]
    if len(expected) != len(found):
        raise ValueError(f"{len(expected) - 1} finish times for {len(finish_seconds)} ranks or flows")
    if not all(math.isfinite(e) and e >= 0.0 for e in expected):
        raise ValueError("a finish time that is not a number of seconds")
    differences = [abs(f - e) / e if e else abs(f) for e, f in zip(expected, found, strict=True)]
    # A nan is infinitely wrong; `max` alone would ignore it.
    return max(math.inf if math.isnan(difference) else difference for difference in differences)


def read(path: Path | Traversable = SHIPPED) -> dict[str, Any]:
    """The file: `meta`, `cases`, and `inputs`, the texts that cases name. Raises InputError for another file."""
    cure = "name a file such as simgrid_cases.json, with cases and inputs"
    try:
        document = json.loads(files.read(path, LARGEST_MEGABYTES))
        if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
            raise ValueError("it has no list of cases")
        if not all(isinstance(case, dict) and isinstance(case.get("algorithm"), str) for case in document["cases"]):
            raise ValueError("a case names no algorithm")
        inputs = document.get("inputs")
        if not isinstance(inputs, dict) or not all(isinstance(text, str) for text in inputs.values()):
            raise ValueError("its inputs are no texts by name")
    except OSError as error:
        raise InputError.of("SimGrid cases", str(path), f"cannot be read ({error.strerror})", cure) from None
    except (ValueError, RecursionError) as error:
        raise InputError.of("SimGrid cases", str(path), f"is not a file of SimGrid cases ({error})", cure) from None
    return document


def _compute_table(text: str) -> list[list[float]]:
    """The compute times of "T N" and T rows of N numbers."""
    steps, workers, *numbers = text.split()
    rows = np.array([float(number) for number in numbers]).reshape(int(steps), int(workers))
    return [[float(x) for x in row] for row in rows]


def _cluster_table(case: Case, inputs: Inputs, hosts: int, server: bool) -> dict[str, Any]:
    """The `[cluster]` table of a case; `hosts` counts the server, the last one, where there is one."""
    table: dict[str, Any] = {"workers": hosts - server, "latency": write(2 * case["L_s_per_link"], "second")}
    if case["link_capacities"] is None:
        return table | {"bandwidth": write(case["B_bytes_per_s"], "byte/second")}
    capacities = [float(x) for x in inputs[case["link_capacities"]].split()]
    return table | _nics(capacities[: len(capacities) // 2], capacities[len(capacities) // 2 :], server, case)


def _nics(ups: list[float], downs: list[float], server: bool, case: Case) -> dict[str, Any]:
    """Exceptions for all NICs. If only the workers' are listed, the server's has the case's B."""
    nics: dict[str, Any] = {
        str(host): {"up": write(up, "byte/second"), "down": write(down, "byte/second")}
        for host, (up, down) in enumerate(zip(ups, downs, strict=True))
    }
    if server and len(ups) > case["N"]:
        nics["server"] = nics.pop(str(case["N"]))
    return {"bandwidth": write(case["B_bytes_per_s"] or max(ups + downs), "byte/second"), "nic": nics}


def _training(
    sends: str, kind: str, policy: dict[str, str] | None = None, servers: int = 1
) -> Callable[[Case, Inputs], list[float]]:
    """Training steps of a scenario, simulated as a user's scenario; synchronous by default.

    A case without compute times is one step that computes for a `MOMENT`. servers: more than one are colocated with the
    workers.
    """

    def recompute(case: Case, inputs: Inputs) -> list[float]:
        server = kind == "parameter_server" and servers == 1
        exchange: dict[str, Any] = {"kind": kind, "sends": sends}
        if kind == "parameter_server":
            exchange |= {"receive": "concurrent", "servers": servers, "colocated": servers > 1}
        table = {
            "steps": 1,
            "cluster": _cluster_table(case, inputs, case["N"] + server, server),
            "compute": {"mean": write(MOMENT, "second")},
            "workload": {"gradient": write(case["S_bytes"], "byte")},
            "policy": policy or {"kind": "synchronous"},
            "communication": exchange,
        }
        if not case["input"]:
            return [seconds - MOMENT for seconds in _finish(simulate(Scenario.of(table)))]
        rows = _compute_table(inputs[case["input"]])
        with tempfile.TemporaryDirectory() as folder:
            times = Path(folder) / "times.csv"
            times.write_text("\n".join(",".join(repr(x) for x in row) for row in rows), "utf-8")
            replayed = {"steps": len(rows), "compute": {"distribution": "replay", "file": str(times)}}
            return _finish(simulate(Scenario.of(table | replayed)))

    return recompute


def _finish(trace: Trace) -> list[float]:
    """When each worker has received the last result."""
    last = trace.spans.of_kind(SpanKind.RECEIVE, SpanKind.ALL_REDUCE)
    return [float(last.end_seconds[last.worker == worker].max()) for worker in range(trace.workers)]


def _sharded_servers(case: Case, inputs: Inputs) -> list[float]:
    """One exchange with a server beside each worker. A rank has finished when its server has sent all answers."""
    if case["link_capacities"] is None and case["N"] > 1:
        return _training("rendezvous", "parameter_server", servers=case["N"])(case, inputs)
    schedule = parameter_server(case["N"], case["N"], colocated=True)
    cluster = Cluster.model_validate(_cluster_table(case, inputs, schedule.ranks, False))
    return collective.run(schedule, cluster, case["S_bytes"]).ends_seconds


def _flows(case: Case, inputs: Inputs) -> list[float]:
    """Independent transfers: number of flows, capacities, then rows of source, target, start seconds and bytes."""
    count, *rest = inputs[case["input"]].split()
    if not 1 <= int(count) <= len(rest) // 4:
        raise ValueError(f"{count} flows on a list of {len(rest)} numbers")
    hosts = (len(rest) - 4 * int(count)) // 2
    capacities = [float(x) for x in rest[: 2 * hosts]]
    rows = np.array([float(x) for x in rest[2 * hosts :]]).reshape(int(count), 4).tolist()
    nics = _nics(capacities[:hosts], capacities[hosts:], False, case)
    table = {"workers": hosts, "latency": write(2 * case["L_s_per_link"], "second")} | nics
    for row in rows:
        _check_flow(row, hosts)
    simulated = SimulatedHosts(Cluster.model_validate(table), hosts)
    ends = [math.nan] * len(rows)

    def carry(number: int, source: int, target: int, start: float, num_bytes: float) -> Generator[Any, Any, None]:
        yield simulated.environment.timeout(start)
        yield simulated.send(source, target, num_bytes)
        ends[number] = simulated.now

    for number, (source, target, start, num_bytes) in enumerate(rows):
        simulated.environment.process(carry(number, int(source), int(target), start, num_bytes))
    simulated.environment.run()
    return ends


def _check_flow(row: list[float], hosts: int) -> None:
    source, target, start, num_bytes = row
    ends_exist = all(end in range(hosts) for end in (source, target))
    if not ends_exist or not (0 <= start <= BOUNDS["second"][1] and 0 <= num_bytes <= BOUNDS["byte"][1]):
        raise ValueError(f"a flow of {num_bytes} bytes from {source} to {target} at {start} s among {hosts} hosts")


RECOMPUTE: dict[str, Callable[[Case, Inputs], list[float]]] = {
    "ring": _training("rendezvous", "ring"),
    "ring_eager": _training("eager", "ring"),
    "ps1": _training("rendezvous", "parameter_server"),
    "psN": _sharded_servers,
    "rhd": _training("rendezvous", "halving_doubling"),
    "tree": _training("rendezvous", "tree"),
    "train_ps": _training("rendezvous", "parameter_server"),
    "train_async": _training("rendezvous", "parameter_server", {"kind": "asynchronous", "stop": "per_worker"}),
    "train_ring": _training("rendezvous", "ring"),
    "train_ring_eager": _training("eager", "ring"),
    "flows": _flows,
}
