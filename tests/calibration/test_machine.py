"""A calibration made on a machine whose links are known predicts other sizes, numbers of workers and policies.

The machine is the simulator: what its traces show is measured like a real run's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from distsim.calibration import Calibration, CalibrationPlan, Exchange, MachineCalibration, exchange_of, fitted
from distsim.calibration.fitted_line import Floats
from distsim.calibration.plan import Probe
from distsim.calibration.samples import Sample
from distsim.cores import Cores
from distsim.errors import InputError
from distsim.profile import BusyCores, CoreSeconds, Layer, Profile
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.workload import Model

LINKS = {"cluster.bandwidth": "2 GB/s", "cluster.latency": "150 us"}
MANY_CORES = 64
PROFILE = Profile(
    "m.py:build", (Layer("weight", 4000, 1e-3, 2e-3, (1e-3, 1e-3), (2e-3, 2e-3)),), 5e-4, (5e-4, 5e-4),
    CoreSeconds(1e-3, 2e-3, 5e-4), 9000, 32, "cpu", "2.9", steps=10,
)  # fmt: skip


def simulated(plan: CalibrationPlan, cores: int = MANY_CORES) -> MachineCalibration:
    """The machine that `plan` finds where links are exactly LINKS."""
    samples: list[Sample] = []
    for probe in (probe for launch in plan.launches() for probe in launch if probe.shows != "compute"):
        samples += [(*what, np.maximum(seconds, 1e-9)) for *what, seconds in probe.samples(on_links(probe))]
    return fitted(samples, cores)


def on_links(probe: Probe) -> Any:
    return simulate(probe.scenario.replacing(LINKS))


@pytest.fixture(scope="module")
def machine() -> MachineCalibration:
    return simulated(CalibrationPlan(workers=(1, 2), sizes=(1e5, 1e6, 3e6), models=(), repeats=4))


def test_every_operation_finds_the_links_again(machine: MachineCalibration) -> None:
    lines = {
        fit.operation: fit.line for fit in machine.fits if len(fit.workers) == 2 or fit.operation == "point_to_point"
    }
    for operation in ("parameter_server", "gather", "broadcast", "point_to_point"):
        assert lines[operation].fixed_seconds == pytest.approx(150e-6, rel=1e-6), operation
        assert lines[operation].unit_seconds == pytest.approx(0.5e-9, rel=1e-6), operation
    rings = [fit.line for fit in machine.fits if fit.operation in ("all_reduce", "ring_schedule")]
    assert len(rings) == 2
    for line in rings:
        assert line.fixed_seconds == pytest.approx(150e-6, rel=1e-6)
        assert line.unit_seconds == pytest.approx(0.5e-9, rel=1e-6)
    assert machine.warnings() == []


SYNCHRONOUS = {"kind": "synchronous"}
SERVER = {"kind": "parameter_server"}
OTHERS = [
    (SYNCHRONOUS, {"kind": "ring"}),
    (SYNCHRONOUS, {"kind": "tree", "implementation": "schedule"}),
    (SYNCHRONOUS, SERVER),
    ({"kind": "backup", "backups": 1}, SERVER),
    ({"kind": "asynchronous"}, SERVER),
    ({"kind": "stale_synchronous", "staleness": 1}, SERVER),
    ({"kind": "local_sgd", "period": 3}, {"kind": "ring"}),
    ({"kind": "ddp", "bucket": "512 KiB"}, {"kind": "ring"}),
]


def scenario(policy: dict[str, Any], communication: dict[str, Any], **workload: Any) -> Scenario:
    return Scenario.of(
        {
            "steps": 8, "seed": 3, "cluster": {"workers": 5, "bandwidth": "1 Mbit/s", "latency": "1 s"},
            "compute": {"distribution": "lognormal", "mean": "5 ms", "cv": 0.3},
            "workload": workload or {"gradient": "700 kB"}, "policy": policy, "communication": communication,
        }
    )  # fmt: skip


@pytest.mark.parametrize(("policy", "communication"), OTHERS, ids=lambda table: table["kind"])
def test_other_sizes_workers_and_policies_are_predicted(
    machine: MachineCalibration, policy: dict[str, Any], communication: dict[str, Any]
) -> None:
    asked = scenario(policy, communication)
    predicted = simulate(asked, Calibration(machine=machine))
    true = simulate(asked.replacing(LINKS))
    assert predicted.total_seconds == pytest.approx(true.total_seconds, rel=1e-4)
    assert predicted.total_seconds < 1.0, "the scenario's own links are not the machine's"


def test_a_pipeline_takes_the_line_of_single_messages(machine: MachineCalibration) -> None:
    asked = scenario({"kind": "pipeline", "micro_batches": 4}, {"kind": "ring"}, activation="2 MB")
    predicted, true = simulate(asked, Calibration(machine=machine)), simulate(asked.replacing(LINKS))
    assert predicted.total_seconds == pytest.approx(true.total_seconds, rel=1e-6)


def test_ranks_beyond_the_cores_take_turns() -> None:
    plan = CalibrationPlan(workers=(2,), sizes=(1e5, 1e6), models=(), repeats=2)
    roomy, narrow = simulated(plan), simulated(plan, cores=2)
    ring, server = scenario(SYNCHRONOUS, {"kind": "ring"}), scenario(SYNCHRONOUS, SERVER)
    for links, factor in ((ring, 5 / 2), (server, 1.0)):
        alone, crowded = exchange_of(roomy, links), exchange_of(narrow, links)
        assert crowded.latency_seconds == pytest.approx(factor * alone.latency_seconds)
        assert crowded.bandwidth_bytes_per_second == pytest.approx(alone.bandwidth_bytes_per_second / factor)
    (warning,) = narrow.warnings()
    assert warning == (
        "up to 3 ranks shared 2 cores in parameter server, gather (pushes), broadcast (answers), server's own work: "
        "these times vary. Predictions that use none of these are not concerned"
    )


def test_on_emulated_links_only_a_messages_own_cost_grows_with_the_crowd() -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 2 * (1e-4 + size / 2 / 1e8))) for size in (1e4, 1e6)]
    ring = scenario(SYNCHRONOUS, {"kind": "ring"})  # 5 ranks
    own, imposed = (exchange_of(fitted(rings, cores=2, emulated=emulated), ring) for emulated in (False, True))
    for exchange in (own, imposed):
        assert exchange.latency_seconds == pytest.approx(5 / 2 * 1e-4)
    assert own.bandwidth_bytes_per_second == pytest.approx(1e8 / (5 / 2))
    assert imposed.bandwidth_bytes_per_second == pytest.approx(1e8)


def test_the_servers_own_work_is_told_from_its_links_and_goes_into_predictions() -> None:
    own = 2e-3
    known = Calibration((Exchange("parameter_server", 2, 2e9, 150e-6, own, ()),))
    plan = CalibrationPlan(workers=(2,), sizes=(1e5, 1e6), models=(), repeats=2)
    probes = [probe for launch in plan.launches() for probe in launch if probe.shows == "parameter_server"]
    found = fitted([sample for p in probes for sample in p.samples(simulate(p.scenario, known))], MANY_CORES)
    for operation in ("gather", "broadcast"):
        assert found.seconds(operation, 2, 5e5) == pytest.approx(150e-6 + 2 * 5e5 / 2e9), operation
    assert found.seconds("apply", 2, 5e5) == pytest.approx(own)
    assert exchange_of(found, scenario(SYNCHRONOUS, SERVER)).apply_seconds == pytest.approx(own)


def points(seconds: Callable[[float], float], sizes: tuple[float, ...] = (1e4, 1e5, 1e6, 1e7)) -> list[Sample]:
    return [("point_to_point", None, 2, size, np.full(5, seconds(size))) for size in sizes]


def test_between_measured_sizes_the_prediction_follows_them_though_the_line_is_poor() -> None:
    """Ten times the cost per byte beyond 1 MB, as where messages leave a cache."""
    machine = fitted(points(lambda size: 1e-4 + 1e-10 * size * (10 if size > 1e6 else 1)), MANY_CORES)
    (warning,) = machine.warnings()
    assert re.fullmatch(
        r"poor fits \(a line more than 25 % off a measured time\): point to point \d+ %\. Between the measured .*\. "
        "Predictions that use none of these are not concerned",
        warning,
    )
    for size in (1e4, 1e6, 1e7):
        true = 1e-4 + 1e-10 * size * (10 if size > 1e6 else 1)
        assert machine.seconds("point_to_point", 2, size) == pytest.approx(true, rel=1e-6)
    assert 1e-3 < machine.seconds("point_to_point", 2, 4e6) < 1e-2


def test_buckets_cost_what_messages_of_their_size_do() -> None:
    """Where small messages cost more than large ones, small buckets do."""
    seconds = {1e5: 5e-3, 1e6: 1e-3, 1e7: 1e-2}
    machine = fitted([("all_reduce", None, 5, size, np.full(3, time)) for size, time in seconds.items()], MANY_CORES)
    small, large = (
        exchange_of(machine, scenario({"kind": "ddp", "bucket": bucket}, {"kind": "ring"}, gradient="10 MB"))
        for bucket in ("100 kB", "10 MB")
    )
    for exchange, size in ((small, 1e5), (large, 1e7)):
        total = 8 * (exchange.latency_seconds + size / 5 / exchange.bandwidth_bytes_per_second)
        assert total == pytest.approx(seconds[size]), size


def test_its_own_number_of_workers_goes_before_all_together() -> None:
    def times(workers: int, latency: float) -> list[Sample]:
        return [("gather", None, workers, size, np.full(3, latency + workers * size / 1e9)) for size in (1e4, 1e6)]

    machine = fitted(times(1, 1e-3) + times(2, 3e-3), MANY_CORES)
    assert machine.seconds("gather", 1, 1e4) == pytest.approx(1e-3 + 1e-5)
    assert machine.seconds("gather", 2, 1e4) == pytest.approx(3e-3 + 2e-5)
    assert 1e-3 < machine.seconds("gather", 3, 1e4) < 3e-3 + 3e-5


def compute(workers: int, model: Model = "mlp") -> list[Sample]:
    return [("compute", model, workers, batch, np.full(3, 2e-3 + 1e-4 * batch)) for batch in (8.0, 16.0, 32.0)]


@pytest.mark.parametrize(("workers", "factor"), [(1, 1.0), (2, 1.0), (5, 2.5)])
def test_a_models_work_is_added_to_the_drawn_time(workers: int, factor: float) -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    machine = fitted([*compute(1), *compute(2), *rings], cores=2)
    asked = scenario(SYNCHRONOUS, {"kind": "ring"}, model="mlp", batch=24).replacing({"cluster.workers": workers})
    exchange = exchange_of(machine, asked)
    assert exchange.model_seconds == pytest.approx(factor * (2e-3 + 1e-4 * 24))
    with_model = simulate(asked, Calibration(machine=machine)).scenario.compute_times().first(0, 4)
    drawn: Floats = asked.compute_times().first(0, 4)
    assert with_model - drawn == pytest.approx(exchange.model_seconds)


def under_ddp(workers: int) -> list[Sample]:
    return [("ddp", "mlp", workers, float(buckets), np.full(3, 9e-3 + 2e-3 * buckets)) for buckets in (1, 2)]


@pytest.mark.parametrize(("bucket", "buckets"), [("1 MiB", 1), ("2 KiB", 2)])
def test_a_step_under_ddp_takes_what_one_took_with_as_many_buckets(bucket: str, buckets: int) -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    machine = fitted([*compute(2), *under_ddp(2), *rings], cores=2)
    ddp = {"kind": "ddp", "bucket": bucket, "first_bucket": bucket}
    asked = scenario(ddp, {"kind": "ring"}, model="mlp", batch=8).replacing({"cluster.workers": 2})
    # Measured with a batch of 32, of which 24 samples fall away.
    expected = 9e-3 + 2e-3 * buckets - 24 * 1e-4
    assert exchange_of(machine, asked).model_seconds == pytest.approx(expected, rel=1e-6)
    alone = scenario(SYNCHRONOUS, {"kind": "ring"}, model="mlp", batch=8).replacing({"cluster.workers": 2})
    assert exchange_of(machine, alone).model_seconds == pytest.approx(2e-3 + 8e-4, rel=1e-6)


@pytest.mark.parametrize(("workers", "nearest", "factor"), [(1, 2, 1.0), (3, 2, 1.5), (6, 4, 1.5)])
def test_ddp_on_workers_that_were_not_measured_takes_the_nearest_measured_ones(
    workers: int, nearest: int, factor: float
) -> None:
    """On two cores; 2 ms longer than a whole model on two workers, 8 ms on four."""
    longer = {2: 2e-3, 4: 8e-3}
    ddp = [
        ("ddp", "mlp", n, 1.0, seconds + longer[n]) for n in longer for *_, batch, seconds in compute(n) if batch == 32
    ]
    machine = fitted([*compute(2), *compute(4), *ddp, *RINGS], cores=2)
    whole, asked = (
        scenario(policy, {"kind": "ring"}, model="mlp", batch=32).replacing({"cluster.workers": workers})
        for policy in (SYNCHRONOUS, {"kind": "ddp", "bucket": "1 MiB"})
    )
    found = exchange_of(machine, asked).model_seconds - exchange_of(machine, whole).model_seconds
    assert found == pytest.approx(factor * longer[nearest], rel=1e-6)


UNIT_BY_UNIT = [("units", "mlp", 1, float(units), np.full(3, 9e-3 + 2e-3 * units)) for units in (1, 2)]
RINGS = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
SCHEDULES = [("ring_schedule", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]


@pytest.mark.parametrize(("workers", "factor"), [(1, 1), (2, 1), (4, 2)])
@pytest.mark.parametrize(("bucket", "units"), [("1 MiB", 1), ("1 B", 2)])
def test_sharded_training_takes_as_much_longer_than_a_whole_model_as_one_worker_did(
    bucket: str, units: int, workers: int, factor: int
) -> None:
    """Four workers on two cores take twice as long. One worker's batch of 32 takes 5.2 ms whole."""
    busy = [(*what, 1.5 * seconds) for *what, seconds in compute(2)]
    machine = fitted([*compute(1), *busy, *UNIT_BY_UNIT, *SCHEDULES], cores=2)
    sharded = {"kind": "sharded", "stage": 1, "bucket": bucket}
    asked, whole = (
        scenario(policy, {"kind": "ring", **how}, model="mlp", batch=8).replacing({"cluster.workers": workers})
        for policy, how in ((sharded, {}), (SYNCHRONOUS, {"implementation": "schedule"}))
    )
    longer = exchange_of(machine, asked).model_seconds - exchange_of(machine, whole).model_seconds
    assert longer == pytest.approx(factor * (9e-3 + 2e-3 * units - 5.2e-3), rel=1e-6)


@pytest.mark.parametrize("policy", [{"kind": "ddp"}, {"kind": "sharded", "stage": 1}])
def test_calibrations_from_before_ddp_or_units_were_measured_still_serve(policy: dict[str, Any]) -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    machine = fitted([*compute(2), *rings, *SCHEDULES], cores=2)
    asked = scenario(policy, {"kind": "ring"}, model="mlp", batch=8).replacing({"cluster.workers": 2})
    assert exchange_of(machine, asked).model_seconds == pytest.approx(2e-3 + 8e-4)


def test_what_was_not_measured_is_refused_with_the_cure(machine: MachineCalibration) -> None:
    asked = scenario(SYNCHRONOUS, {"kind": "ring"}, model="mlp", batch=24)
    with pytest.raises(InputError, match=r"calibration of = 'compute, mlp'.*--model mlp"):
        exchange_of(machine, asked)
    alone = fitted(points(lambda size: size / 1e9), MANY_CORES)
    with pytest.raises(InputError, match=r"all-reduce, backend.*holds point to point.*--workers 1,2"):
        exchange_of(alone, scenario(SYNCHRONOUS, {"kind": "ring"}))


def test_a_transformer_of_another_shape_is_refused() -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    blocks = [("compute", "transformer", 2, batch, np.full(3, 1e-3 * batch)) for batch in (8.0, 32.0)]
    machine = fitted([*rings, *blocks], MANY_CORES)
    usual = scenario(SYNCHRONOUS, {"kind": "ring"}, model="transformer", batch=16)
    assert exchange_of(machine, usual).model_seconds == pytest.approx(16e-3)
    with pytest.raises(InputError, match="transformers of the default width and layers"):
        exchange_of(machine, scenario(SYNCHRONOUS, {"kind": "ring"}, model="transformer", batch=16, width=128))


def test_sizes_that_make_no_difference_leave_a_finite_bandwidth() -> None:
    machine = fitted(points(lambda _size: 1e-3), MANY_CORES)
    pipeline = scenario({"kind": "pipeline", "micro_batches": 2}, {"kind": "ring"}, activation="1 MB")
    exchange = exchange_of(machine, pipeline)
    assert exchange.latency_seconds == pytest.approx(1e-3)
    assert 1e12 < exchange.bandwidth_bytes_per_second < 1e15


def test_a_ring_of_more_workers_has_smaller_messages_and_their_bend() -> None:
    """Messages above 1 MB take twice as long: those of gradients of 2 MB with 2 workers, and of 4 MB with 4."""
    sizes = (1e5, 1e6, 2e6, 4e6, 8e6)
    rings = [
        ("all_reduce", None, 2, size, np.full(3, 2 * (1e-4 + (2.0 if size > 2e6 else 1.0) * size / 2 / 1e9)))
        for size in sizes
    ]
    machine = fitted(rings, cores=4)
    for size in (1e6, 2e6, 4e6):
        shorter, longer = (machine.seconds("all_reduce", workers, workers * size / 2) for workers in (2, 4))
        assert longer == pytest.approx(3 * shorter, rel=1e-9)  # 6 messages of the same size in place of 2


CALL = 300e-6  # core-seconds to call an all-reduce
WORK = [  # a rank's core-seconds: a call, 40 us a message sent and received, 2 ns a byte
    ("all_reduce", None, workers, size, np.full(3, CALL + 2 * (workers - 1) * (40e-6 + 2e-9 * size / workers)))
    for workers in (2, 4) for size in (1e4, 1e6)
] + [("bucket_mean", None, 1, size, np.full(3, CALL + size / 4e9)) for size in (1e4, 1e6)]  # fmt: skip
MESSAGE = 1e-3  # seconds
TURN = 4e-3  # seconds more on busy cores
SLOWER = 1.25  # times as long as alone, with both cores busy


def sharing(work: list[Sample], model: Model = "mlp", more: Sequence[Sample] = ()) -> MachineCalibration:
    """Two cores, calibrated at 1, 2 and 4 workers."""
    busy = [(*what, SLOWER * seconds) for *what, seconds in compute(2, model)]
    rings = [
        ("all_reduce", None, workers, size, np.full(3, workers * (MESSAGE + size / 1e9)))
        for workers in (2, 4) for size in (1e4, 1e6)
    ]  # fmt: skip
    means = [("bucket_mean", None, 1, size, np.full(3, 1e-4 + size / 1e9)) for size in (1e4, 1e6)]
    turns = [("turn", 2, 1e4, np.full(3, 2 * (MESSAGE + 1e4 / 1e9 + TURN)))]
    return fitted([*compute(1, model), *busy, *rings, *means, *more], cores=2, work=work, corrections=turns)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("policy", [SYNCHRONOUS, {"kind": "ddp"}])
def test_workers_that_compute_a_model_share_the_cores(policy: dict[str, Any], workers: int) -> None:
    machine = sharing(WORK)
    asked = scenario(policy, {"kind": "ring"}, model="mlp", batch=32).replacing({"cluster.workers": workers})
    exchange = exchange_of(machine, asked)
    assert exchange.model_seconds == 0.0
    assert exchange.cores is not None
    assert exchange.cores.capacity == pytest.approx(2 / SLOWER)
    assert exchange.cores.step_seconds == pytest.approx(2e-3 + 1e-4 * 32)
    assert exchange.cores.message_seconds == pytest.approx(20e-6)
    assert exchange.cores.byte_seconds == pytest.approx(1e-9)
    # Two workers send two messages each, beside the call.
    assert exchange.cores.call_seconds == pytest.approx(CALL)
    assert exchange.cores.bucket_byte_seconds == pytest.approx(0.25e-9)
    assert exchange.latency_seconds == pytest.approx(MESSAGE - CALL / 2)
    assert (exchange.cores.count, exchange.cores.turn_seconds) == (2, pytest.approx(TURN))
    # The links are those of two ranks on two cores, and nothing is counted twice.
    at_two = exchange_of(machine, asked.replacing({"cluster.workers": 2}))
    assert exchange.bandwidth_bytes_per_second == at_two.bandwidth_bytes_per_second
    assert exchange.latency_seconds == at_two.latency_seconds
    trace = simulate(asked, Calibration(machine=machine))
    assert trace.metadata["engine"] == "story"
    busy = workers * exchange.cores.step_seconds / exchange.cores.capacity
    assert np.diff(trace.updates.time_seconds).min() > max(busy, exchange.cores.step_seconds)


def with_schedules(machine: MachineCalibration) -> MachineCalibration:
    """The same, whose schedules take as long as the backend's all-reduces."""
    rings = [
        fit.model_copy(update={"operation": "ring_schedule"}) for fit in machine.fits if fit.operation == "all_reduce"
    ]
    return machine.model_copy(update={"fits": (*machine.fits, *rings)})


def test_a_schedule_has_turns_of_its_own() -> None:
    asked = scenario(SYNCHRONOUS, {"kind": "ring", "implementation": "schedule"}, model="mlp", batch=32)
    schedules = [("ring_schedule", *what) for _, *what in WORK[:4]]
    machine = sharing([*WORK, *schedules])
    exchange = exchange_of(with_schedules(machine).model_copy(update={"schedule_turn_seconds": 2e-3}), asked)
    assert exchange.cores is not None
    assert exchange.cores.turn_seconds == exchange.cores.arrival_turn_seconds == 1e-3, "half at each end"
    assert TURN != 2e-3


@pytest.mark.parametrize(
    ("policy", "handed"),
    [(SYNCHRONOUS, 0.0), ({"kind": "ddp"}, 3e-4), ({"kind": "sharded", "stage": 1}, 3e-4), ({"kind": "tensor"}, 3e-4)],
)
def test_an_exchange_that_another_thread_makes_is_handed_over(policy: dict[str, str], handed: float) -> None:
    """The links keep their latency: they were measured without it."""
    asked = scenario(policy, {"kind": "ring", "implementation": "schedule"}, model="transformer", batch=32)
    machine = with_schedules(sharing([*WORK, *(("ring_schedule", *what) for _, *what in WORK[:4])], "transformer"))
    handing_over = [machine.model_copy(update={"hand_over_seconds": seconds}) for seconds in (0.0, 3e-4)]
    exchanges = [exchange_of(one, asked) for one in handing_over]
    assert [one.cores.call_seconds for one in exchanges if one.cores] == [0.0, handed]
    assert exchanges[0].latency_seconds == exchanges[1].latency_seconds > 0.0


@pytest.mark.parametrize(
    ("policy", "sharing_a_block"),
    [({"kind": "sharded", "stage": 3}, 1), ({"kind": "tensor"}, 4), ({"kind": "mesh", "data": 2, "tensor": 2}, 2)],
)
def test_workers_that_share_a_block_share_what_grows_with_the_samples(
    policy: dict[str, Any], sharing_a_block: int
) -> None:
    """Each of them calls all operations. The policy divides the seconds by the workers that share a block."""
    machine = with_schedules(sharing([*WORK, *(("ring_schedule", *what) for _, *what in WORK[:4])], "transformer"))
    whole = scenario(SYNCHRONOUS, {"kind": "ring"}, model="transformer", batch=32)
    cores = exchange_of(machine, whole.replacing({"cluster.workers": 4, "policy": policy})).cores
    assert cores is not None
    assert cores.step_seconds / sharing_a_block == pytest.approx(2e-3 + 1e-4 * 32 / sharing_a_block)


@pytest.mark.parametrize(
    ("policy", "pieces"),
    [({"kind": "sharded", "stage": 3}, 16), ({"kind": "tensor"}, 32), ({"kind": "mesh", "data": 2, "tensor": 2}, 32)],
)
def test_each_worker_that_shares_a_block_computes_every_piece_of_it(policy: dict[str, Any], pieces: int) -> None:
    """A transformer of 16 blocks takes 5.2 ms whole, and 6 ms and 10 us for each piece unit by unit."""
    units = [("units", "transformer", 1, float(count), np.full(3, 6e-3 + 1e-5 * count)) for count in (1, 16)]
    work = [*WORK, *(("ring_schedule", *what) for _, *what in WORK[:4])]
    whole = scenario(SYNCHRONOUS, {"kind": "ring"}, model="transformer", batch=32)
    asked = whole.replacing({"cluster.workers": 4, "policy": policy})
    machines = [with_schedules(sharing(work, "transformer", more)) for more in ((), units)]
    before, found = (exchange_of(one, asked).cores for one in machines)
    assert before is not None
    assert found is not None
    shared_by = {"sharded": 1, "tensor": 4, "mesh": 2}[policy["kind"]]
    longer = (found.step_seconds - before.step_seconds) / shared_by
    assert longer == pytest.approx(6e-3 + 1e-5 * pieces - 5.2e-3, rel=1e-6)


@pytest.mark.parametrize(("count", "chosen"), [(1, 0), (2, 0), (4, 0), (5, 1), (6, 1), (9, 2)])
def test_of_a_models_runs_the_one_at_the_lower_quartile_counts_and_of_an_exchanges_all(count: int, chosen: int) -> None:
    """Also where most runs met a slow core; a single quick step changes nothing."""
    medians = [34e-3 + 2e-3 * number for number in range(count)]
    runs = [np.array([1e-3, middle, middle, 60e-3]) for middle in reversed(medians)]
    of_model: list[Sample] = [("compute", "mlp", 2, amount, run) for amount in (8.0, 16.0) for run in runs]
    of_exchange: list[Sample] = [("all_reduce", None, 2, amount, run) for amount in (1e5, 1e6) for run in runs]
    machine = fitted([*of_model, *of_exchange], cores=2)
    for found in machine.measured:
        model = found.operation == "compute"
        assert found.seconds == pytest.approx(medians[chosen] if model else np.median(np.concatenate(runs)))
        assert found.repeats == (4 if model else 4 * count)
    assert machine.seconds("compute", 2, 16.0, "mlp") == pytest.approx(medians[chosen])


def test_the_hand_over_is_the_median_of_all_steps() -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 2e-3 + size / 1e9)) for size in (1e4, 1e6)]
    assert fitted(rings, cores=2).hand_over_seconds == 0.0
    handed = [("hand_over", 1, 1e4, np.array(seconds)) for seconds in ([1.0, 9.0], [2.0])]
    assert fitted(rings, cores=2, corrections=handed).hand_over_seconds == 2.0


@pytest.mark.parametrize(
    ("cores", "measured", "two", "four"),
    [(1, (2, 4), 1e-4, 1e-4), (2, (4, 2), 1e-4, 9e-4), (2, (2,), 1e-4, 1e-4), (3, (2, 4), 0.0, 9e-4),
     (4, (2, 4), 0.0, 9e-4), (5, (2, 4), 0.0, 0.0)],
)  # fmt: skip
def test_a_wake_up_is_that_of_the_fewest_workers_that_share_as_many_cores(
    cores: int, measured: tuple[int, ...], two: float, four: float
) -> None:
    """It counts only where the workers leave no core over, and takes longer where several of them share a core."""
    rings = [("ring_schedule", None, 2, size, np.full(3, 2e-3 + size / 1e9)) for size in (1e4, 1e6)]
    seconds = {2: 1e-4, 4: 9e-4}
    found = fitted(
        rings, cores=cores, corrections=[("wake", n, 1e4, np.full(3, seconds[n])) for n in measured],
        work=[(kind, None, 2, size, np.full(3, 1e-5)) for kind in ("bucket_mean", "ring_schedule") for size in (1, 9)],
    )  # fmt: skip
    for workers, wake in ((2, two), (4, four)):
        asked = scenario({"kind": "sharded", "stage": 3}, {"kind": "ring"}, profile=PROFILE.as_dict())
        shared = exchange_of(found, asked.replacing({"cluster.workers": workers})).cores
        assert shared is not None
        assert shared.wake_seconds == pytest.approx(wake)


@pytest.mark.parametrize(("workers", "turn"), [((2, 4), 4e-3), ((4, 2), 4e-3), ((4,), 3e-3), ((1,), 0.0)])
def test_a_turn_is_that_of_the_fewest_workers_that_fill_the_cores(workers: tuple[int, ...], turn: float) -> None:
    """Four workers on two cores make a message wait twice: behind two workers on its core."""
    rings = [
        ("all_reduce", None, n, size, np.full(3, 2e-3 * (n - 1) + size / 1e9)) for n in (2, 4) for size in (1e4, 1e6)
    ]
    seconds = {1: 1.0, 2: 2e-3 + 1e-5 + 2 * 4e-3, 4: 6e-3 + 1e-5 + 6 * 2 * 3e-3}
    turns = [("turn", n, 1e4, np.full(3, seconds[n])) for n in workers]
    schedules = [("ring_schedule", *one) for _, *one in rings]
    slower = [("schedule_turn", *one[1:-1], one[-1] + 2e-3) for one in turns]  # for 2 or 2 * 6 turns
    found = fitted([*rings, *schedules], cores=2, corrections=[*turns, *slower])
    assert found.turn_seconds == pytest.approx(turn, rel=0.01)
    turns_of_a_sum = {2: 2, 4: 12}[min((n for n in workers if n > 1), default=2)]
    assert found.schedule_turn_seconds == pytest.approx((turn + 2e-3 / turns_of_a_sum) * bool(turn), rel=0.01)


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [(SYNCHRONOUS, 3.5e-3), ({"kind": "ddp", "bucket": "1 MiB"}, 5e-3), ({"kind": "sharded", "stage": 3}, 5e-3)],
)
def test_the_step_that_is_told_is_the_one_that_is_predicted(policy: dict[str, Any], seconds: float) -> None:
    """Under DDP and in sharded training a worker handles gradients more often, which the profile measured."""
    asked = scenario(policy, {"kind": "ring"}, profile=replace(PROFILE, ddp_seconds=5e-3).as_dict())
    schedules = [("ring_schedule", *what) for _, *what in WORK[:4]]
    found = exchange_of(with_schedules(sharing([*WORK, *schedules])), asked)
    assert found.cores is not None
    assert found.cores.step_seconds == pytest.approx(seconds)
    assert f"a worker computes for {1e3 * seconds:g} ms alone" in found.describe()


def test_no_turn_is_shorter_than_none() -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 2e-3 + size / 1e9)) for size in (1e4, 1e6)]
    assert fitted(rings, cores=2, corrections=[("turn", 2, 1e4, np.full(3, 1e-3))]).turn_seconds == 0.0


def test_cores_are_shared_only_where_workers_compute_and_their_work_was_measured() -> None:
    machine = sharing(WORK)
    sleeping = scenario(SYNCHRONOUS, {"kind": "ring"}, gradient="1 MB").replacing({"cluster.workers": 4})
    assert exchange_of(machine, sleeping).cores is None
    computing = scenario(SYNCHRONOUS, {"kind": "ring"}, model="mlp", batch=32).replacing({"cluster.workers": 4})
    before = sharing([])
    assert exchange_of(before, computing).cores is None
    assert exchange_of(before, computing).model_seconds > 0.0


@pytest.mark.parametrize(("device", "shares"), [("cpu", True), ("NVIDIA H100", False)])
def test_a_profiled_model_shares_the_cores_unless_it_computes_on_a_gpu(device: str, *, shares: bool) -> None:
    asked = scenario(SYNCHRONOUS, {"kind": "ring"}, profile=replace(PROFILE, device=device).as_dict()).replacing(
        {"cluster.workers": 4}
    )
    exchange = exchange_of(sharing(WORK), asked)
    assert exchange.model_seconds == 0.0
    assert (exchange.cores is not None) == shares
    assert exchange.cores is None or exchange.cores.step_seconds == pytest.approx(3.5e-3)
    assert exchange.cores is None or exchange.cores.capacity == pytest.approx(2 / SLOWER)


def cores_of(workers: int, pace: float, shared_pace: float | None) -> Cores:
    """The shared cores of so many workers with a profile of these paces, on a machine of two cores."""
    profile = replace(PROFILE, busy=BusyCores(2, pace, shared_pace))
    asked = scenario(SYNCHRONOUS, {"kind": "ring"}, profile=profile.as_dict()).replacing({"cluster.workers": workers})
    found = exchange_of(sharing(WORK), asked).cores
    assert found is not None
    return found


@pytest.mark.parametrize(("pace", "capacity"), [(0.6, 1.2), (1.0, 2.0), (1.3, 2.0)])
def test_a_profile_that_knows_its_own_pace_needs_no_other_models(pace: float, capacity: float) -> None:
    assert cores_of(4, pace, None).capacity == pytest.approx(capacity)


@pytest.mark.parametrize(("workers", "capacity"), [(2, 1.8), (3, 1.6), (4, 1.6)])
def test_workers_that_outnumber_cores_have_the_pace_of_shared_cores(workers: int, capacity: float) -> None:
    assert cores_of(workers, 0.9, 0.8).capacity == pytest.approx(capacity)
    assert cores_of(workers, 1.1, 0.8).capacity == pytest.approx(1.6 if workers > 2 else 2.0)
    assert cores_of(workers, 0.5, 0.8).capacity == pytest.approx(1.6 if workers > 2 else 1.0)


@pytest.mark.parametrize(
    ("measured", "workers", "pace"),
    [
        ({2: 1.25}, 4, 0.8),  # nothing else is known
        ({2: 1.25, 4: 4.0}, 2, 0.8),
        ({2: 1.25, 4: 4.0}, 3, 0.5),  # as near as 2, and three workers outnumber two cores
        ({2: 1.25, 4: 4.0}, 9, 0.5),
        ({2: 1.25, 3: 2.0, 4: 4.0}, 3, 0.75),
        ({2: 1.25, 3: 2.0, 8: 10.0}, 4, 0.75),
        ({4: 1.0}, 4, 1.0),  # no machine has more than its cores
    ],
)
def test_workers_that_outnumber_cores_have_the_pace_of_those_measured(
    measured: dict[int, float], workers: int, pace: float
) -> None:
    """measured: how many times longer as many workers took than one alone."""
    busy = [(*what, slower * seconds) for n, slower in measured.items() for *what, seconds in compute(n)]
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    machine = fitted([*compute(1), *busy, *rings], cores=2, work=WORK)
    asked = scenario(SYNCHRONOUS, {"kind": "ring"}, model="mlp", batch=32).replacing({"cluster.workers": workers})
    found = exchange_of(machine, asked).cores
    assert found is not None
    assert found.capacity == pytest.approx(2 * pace)


@pytest.mark.parametrize(
    ("workload", "pace"),
    [
        ({"model": "mlp", "batch": 32}, 0.5),
        ({"model": "mlp", "batch": 8}, 0.9),
        ({"model": "mlp", "batch": 23}, 0.525),  # half-way from 16 to 32, by their ratio
        ({"model": "mlp", "batch": 1}, 0.9),
        ({"model": "mlp", "batch": 500}, 0.5),
        ({"profile": PROFILE.as_dict()}, 0.55),  # of all batches
    ],
)
def test_a_batch_has_the_pace_that_was_measured_with_it(workload: dict[str, Any], pace: float) -> None:
    paces = {8.0: 0.9, 16.0: 0.55, 32.0: 0.5}
    busy = [(*what, batch, seconds / paces[batch]) for *what, batch, seconds in compute(1)]
    side_by_side = [(operation, model, 2, batch, seconds) for operation, model, _, batch, seconds in busy]
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    machine = fitted([*compute(1), *side_by_side, *rings], cores=2, work=WORK)
    found = exchange_of(machine, scenario(SYNCHRONOUS, {"kind": "ring"}, **workload)).cores
    assert found is not None
    assert found.capacity == pytest.approx(2 * pace, rel=5e-3)


def test_a_model_measured_with_one_worker_has_all_cores() -> None:
    rings = [("all_reduce", None, 2, size, np.full(3, 1e-3 + size / 1e9)) for size in (1e4, 1e6)]
    machine = fitted([*compute(1), *rings], cores=2, work=WORK)
    asked = scenario(SYNCHRONOUS, {"kind": "ring"}, model="mlp", batch=32).replacing({"cluster.workers": 2})
    found = exchange_of(machine, asked).cores
    assert found is not None
    assert found.capacity == 2.0
