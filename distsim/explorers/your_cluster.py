"""Your cluster: load a file that `distsim calibrate` wrote there, predict a run, measure the run, compare the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distsim.calibration import Calibration, far_beyond
from distsim.calibration.links import operation_of
from distsim.errors import InputError
from distsim.explorers import scenario_tables
from distsim.explorers.catalogue import EXPLORERS
from distsim.explorers.controls import Choice, Pick, Slider, Text
from distsim.explorers.explorer import Explorer
from distsim.explorers.result_columns import GRADIENTS, IDLE, STEP, TOTAL, results
from distsim.figures.captioned import Captioned, Row
from distsim.figures.scaling import SpeedUps, scaling
from distsim.figures.wording import counted
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace
from distsim.units import show

COMMAND = "distsim calibrate --out machine.json"
MOST_WORKERS = 16
COUNTS = (1, 2, 4, 8, MOST_WORKERS)  # numbers of workers on the curve, besides the chosen number
LATENCY, BANDWIDTH = "latency (us)", "bandwidth (MB/s)"
MEASURED_AT, MISS = "links measured at", "largest error of their line (%)"
BANDWIDTHS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)  # Gbit/s

# The policy, and the communication of its gradients.
UPDATES: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "synchronous, ring": ({"kind": "synchronous"}, "ring"),
    "synchronous, server": ({"kind": "synchronous"}, "parameter_server"),
    "one backup worker": ({"kind": "backup", "backups": 1}, "parameter_server"),
    "asynchronous": ({"kind": "asynchronous"}, "parameter_server"),
    "stale synchronous": ({"kind": "stale_synchronous", "staleness": 2}, "parameter_server"),
}


@dataclass(frozen=True)
class Parameters:
    """What the controls set.

    calibration: the path of a file that `distsim calibrate` wrote. If it is empty, every NIC is assumed to carry
    gbit_per_second in each direction, with a latency of latency_us microseconds between two NICs.
    updates: a name in `UPDATES`. gradient_mib: size of a gradient in MiB. mean_ms, cv: the mean of the compute time in
    milliseconds, and its standard deviation / mean.
    """

    calibration: str = ""
    updates: str = "synchronous, ring"
    workers: int = 4
    gradient_mib: float = 4.0
    mean_ms: float = 50.0
    cv: float = 0.3
    steps: int = 50
    gbit_per_second: float = 10.0
    latency_us: float = 50.0
    seed: int = 7

    @property
    def scenario(self) -> Scenario:
        """The scenario on the assumed links. Raises InputError where a backup has no worker to stand in for."""
        policy, kind = UPDATES[self.updates]
        table = {
            "name": f"your-cluster-{self.workers}",
            "steps": self.steps,
            "seed": self.seed,
            "cluster": scenario_tables.cluster(self.workers, self.gbit_per_second, self.latency_us),
            "compute": scenario_tables.compute(f"{self.mean_ms:g} ms", self.cv),
            "workload": {"gradient": f"{self.gradient_mib:g} MiB"},
            "policy": dict(policy),
            "communication": {"kind": kind},
        }
        return Scenario.of(table)


def scenarios(parameters: Parameters) -> tuple[Scenario]:
    """The scenario to predict and measure. Raises InputError where a backup has no worker to stand in for.

    >>> scenarios(Parameters(workers=8))[0].cluster.workers
    8
    """
    return (parameters.scenario,)


def known(parameters: Parameters) -> Calibration | None:
    """The calibration of the named file; None where no file is named.

    Raises InputError where the file is missing, damaged, or holds only the runs for which it was made.

    >>> known(Parameters()) is None
    True
    """
    name = parameters.calibration.strip()
    if not name:
        return None
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # there is no such user's home
        raise InputError.of("calibration file", name, str(error), "write the whole path") from None
    found = Calibration.load(path)
    if found.machine is None:
        rule = "holds single exchanges only, and no line that tells of other numbers of workers"
        raise InputError.of("calibration file", name, rule, f"make one with {COMMAND}")
    return found


def explore(parameters: Parameters) -> Captioned:
    """The predicted speed-up against the number of workers, the chosen number marked; the table is for that number.

    Raises InputError for an unusable calibration and for an impossible combination.

    >>> [row["links measured at"] for row in explore(Parameters()).table]
    ['nowhere: assumed']
    """
    calibration, chosen = known(parameters), parameters.scenario
    curve = {count: _with_workers(chosen, count) for count in sorted({*COUNTS, parameters.workers})}
    traces = {count: simulate(scenario, calibration) for count, scenario in curve.items()}
    predicted = SpeedUps.of_traces(f"predicted, {parameters.updates}", list(traces.values()))
    speed_up = predicted.values[predicted.workers.index(parameters.workers)]
    marked = SpeedUps(counted(parameters.workers, "worker"), [parameters.workers], [speed_up])
    row = _row(traces[parameters.workers], parameters, calibration)
    sentences = [_links(row, parameters, calibration), _finding(row, parameters, speed_up)]
    if calibration is not None:
        sentences += _guesses(calibration, chosen, curve)
    return Captioned(scaling(predicted, marked).figure, " ".join(sentences), [row])


def explorer() -> Explorer[Parameters]:
    """The explorer as a widget. A notebook cell whose last line is `explorer()` shows the widget.

    >>> view = explorer()
    >>> view.controls["calibration"].value = "no such file.json"
    >>> "cannot be read" in view.message.value
    True
    """
    return Explorer(
        title=EXPLORERS["your_cluster"].title,
        question=(
            f"The command {COMMAND} measures the links of your machine. Name its file here, and the prediction uses "
            "these links. Then run the scenario for real and see how far off the prediction was."
        ),
        start=Parameters(),
        controls=[
            Text("calibration", "calibration file", "a path, or nothing"),
            Pick("updates", "updates", tuple(UPDATES)),
            Slider("workers", "workers", "", 1, MOST_WORKERS),
        ],
        more=[
            Choice("gradient_mib", "gradient", "MiB", (0.25, 1.0, 4.0, 16.0, 64.0)),
            Choice("mean_ms", "mean compute time", "ms", (5.0, 10.0, 20.0, 50.0, 100.0, 200.0)),
            Slider("cv", "straggler spread, cv", "", 0.0, 1.5, 0.05),
            Slider("steps", "steps", "", 10, 200, 10),
            Choice("gbit_per_second", "bandwidth, assumed or emulated", "Gbit/s", BANDWIDTHS),
            Choice("latency_us", "latency, assumed or emulated", "us", (0.0, 50.0, 200.0, 1000.0)),
            Slider("seed", "seed of the draws", "", 0, 20),
        ],
        explore=explore,
        scenarios=scenarios,
        watched=(STEP, TOTAL, GRADIENTS, IDLE, LATENCY, BANDWIDTH),
        calibration=known,
    )


def _with_workers(scenario: Scenario, workers: int) -> Scenario:
    """The scenario with so many workers. A single worker has no backup."""
    change: dict[str, Any] = {"cluster.workers": workers}
    if workers == 1 and scenario.policy.kind == "backup":
        change["policy.backups"] = 0
    return scenario.replacing(change)


def _row(trace: Trace, parameters: Parameters, calibration: Calibration | None) -> Row:
    cluster = trace.scenario.cluster
    at, miss = _measured(parameters.scenario, calibration)
    return {
        "updates": parameters.updates,
        **results(trace, STEP, TOTAL, GRADIENTS, IDLE),
        LATENCY: 1e6 * cluster.latency_seconds,
        BANDWIDTH: 1e-6 * cluster.bandwidth_bytes_per_second,
        MEASURED_AT: f"{', '.join(map(str, at))} worker{'s' if at != (1,) else ''}" if at else "nowhere: assumed",
        MISS: miss,
    }


def _measured(scenario: Scenario, calibration: Calibration | None) -> tuple[tuple[int, ...], float | None]:
    """The numbers of workers at which the links were measured, and the largest error of their line in percent."""
    if calibration is None or calibration.machine is None:
        return (), None
    exchange = calibration.of(scenario)
    if exchange in calibration.exchanges:  # a measurement with exactly this number of workers goes first
        return (exchange.workers,), None
    at, key = exchange.measured_workers, (operation_of(scenario), exchange.measured_workers)
    (miss,) = [fit.line.largest_miss for fit in calibration.machine.fits if (fit.operation, fit.workers) == key]
    return at, 100.0 * miss


def _links(row: Row, parameters: Parameters, calibration: Calibration | None) -> str:
    """A sentence on the links that the prediction uses."""
    bandwidth = show(1e6 * float(row[BANDWIDTH] or 0.0), "byte/second")
    latency = show(1e-6 * float(row[LATENCY] or 0.0), "second")
    if calibration is None:
        return f"No calibration is loaded: links of {bandwidth} and {latency} are assumed."
    machine = calibration.machine
    links = f"On {machine.links}, links" if machine and machine.emulated else "Links"
    at, _ = _measured(parameters.scenario, calibration)
    others = "" if parameters.workers in at else f", reckoned for {counted(parameters.workers, 'worker')},"
    return f"{links} as measured at {row[MEASURED_AT]}{others} carry {bandwidth} after {latency}."


def _finding(row: Row, parameters: Parameters, speed_up: float) -> str:
    give = f"{counted(parameters.workers, 'worker')} {'gives' if parameters.workers == 1 else 'give'}"
    return (
        f"With these links, {give} {row[GRADIENTS]:.1f} gradients a second, {speed_up:.3g} times as many as one "
        f"worker. The median step takes {row[STEP]:.1f} ms."
    )


def _guesses(calibration: Calibration, chosen: Scenario, curve: Mapping[int, Scenario]) -> list[str]:
    """Sentences on the parts of the prediction that are far beyond all measurements."""
    told = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in far_beyond(calibration, chosen)]
    others = [
        str(count)
        for count, scenario in curve.items()
        if count != chosen.cluster.workers and far_beyond(calibration, scenario)
    ]
    if others:
        told.append(f"The curve is a guess at {', '.join(others)} workers, which is far beyond what was measured.")
    return told
