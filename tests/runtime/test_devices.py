"""Where ranks work: the choice of CPU or GPU, a GPU's stopwatch, stories on a device of their own, real GPUs if any."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from distsim import Scenario, Trace, doctor
from distsim.policies import Ddp
from distsim.runtime.devices import device, stopwatch
from distsim.runtime.devices.device import Device, GpuSupport, obstacle
from distsim.runtime.measure import measure, measure_all
from distsim.runtime.ranks.bucket_stream import QueueStream
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport import backend
from distsim.trace import SpanKind, violations

LATE = (str(Path(__file__).parent / "ranks" / "late.py"),)
PATIENCE = timedelta(seconds=60)
STEPS, WORKERS = 6, 2
SYNCHRONOUS, LOCAL = {"kind": "synchronous"}, {"kind": "local_sgd", "period": 2}
BUCKETS = {"kind": "ddp", "bucket": "2 KiB", "first_bucket": "2 KiB", "accumulate": 2}
PIPELINE = {"kind": "pipeline", "micro_batches": 1}
RING, SERVER = {"kind": "ring"}, {"kind": "parameter_server"}
FAILURES = {
    "mean_time_between": "60 s", "checkpoint_every": "5 s", "checkpoint_cost": "10 ms", "restart_cost": "10 s"
}  # fmt: skip
MODEL = {"model": "mlp", "batch": 16}


def scenario_of(policy: dict[str, Any], communication: dict[str, Any] = RING, **tables: Any) -> Scenario:
    return Scenario.of(
        {
            "name": policy["kind"],
            "steps": STEPS,
            "seed": 7,
            "cluster": {"workers": WORKERS, "bandwidth": "1 Gbit/s", "latency": "0 s"},
            "compute": {"distribution": "lognormal", "mean": "30 ms", "cv": 0.1},
            "workload": {"gradient": "64 KiB", "batch": 1},
            "policy": policy,
            "communication": communication,
        }
        | tables
    )


# The choice


@pytest.mark.parametrize("gpus", [0, 1, 2, 8])
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("nccl", [False, True])
def test_a_machine_needs_nccl_and_a_gpu_for_each_rank(gpus: int, ranks: int, nccl: bool) -> None:
    lack = GpuSupport(gpus, nccl, ranks).lack()
    assert (lack is None) == (nccl and gpus >= ranks)


@pytest.mark.parametrize(
    ("scenario", "emulated", "why"),
    [
        (scenario_of(SYNCHRONOUS), False, None),
        (scenario_of(LOCAL), False, None),
        (scenario_of(BUCKETS), False, None),
        (scenario_of(SYNCHRONOUS, workload=MODEL), False, None),
        (scenario_of(SYNCHRONOUS), True, "emulated"),
        (scenario_of(BUCKETS), True, "emulated"),
        (scenario_of(SYNCHRONOUS, SERVER), False, "servers"),
        (scenario_of({"kind": "asynchronous"}, SERVER), False, "servers"),
        (scenario_of({"kind": "flexrr", "group": 1}, SERVER), False, "servers"),
        (scenario_of(LOCAL, SERVER), False, "schedules"),
        (scenario_of(BUCKETS, {"kind": "tree", "implementation": "schedule"}), False, "schedules"),
        (scenario_of(PIPELINE, workload={"activation": "64 KiB", "batch": 1}), False, "pipelines"),
        (scenario_of(SYNCHRONOUS, failures=FAILURES), False, "failure"),
    ],
)
def test_only_sums_by_the_backend_go_to_gpus(scenario: Scenario, emulated: bool, why: str | None) -> None:
    found = obstacle(scenario, emulated=emulated)
    assert found is None if why is None else found is not None and why in found


class Ranks:
    """What all ranks of a run tell, and which of the functions that all must call this one has called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own: GpuSupport, *others: tuple[str | None, str]) -> None:
        self.gathered = self.gpus = 0
        self._others = others
        monkeypatch.setenv("LOCAL_RANK", "0")
        monkeypatch.setattr(GpuSupport, "own", classmethod(lambda _: own))
        monkeypatch.setattr(torch.cuda, "get_device_name", "GPU {}".format)
        monkeypatch.setattr(backend, "num_ranks", lambda: 1 + len(others))
        monkeypatch.setattr(backend, "all_gather", self._gather)
        monkeypatch.setattr(device, "on_gpu", self._on_gpu)

    def _gather(self, own: Any) -> list[Any]:
        self.gathered += 1
        return [own, *self._others]

    def _on_gpu(self, names: list[str], _patience: timedelta) -> Device:
        self.gpus += 1
        return Device(torch.device("cpu"), "nccl", None, stopwatch.ON_CPU, tuple(names), "")


PLENTY = GpuSupport(gpus=2, nccl=True, ranks=2)


def test_all_ranks_work_on_gpus_if_all_can(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(monkeypatch, PLENTY, (None, "GPU 1"))
    wanted = [scenario_of(SYNCHRONOUS), scenario_of(SYNCHRONOUS, SERVER), scenario_of(BUCKETS)]
    found = device.devices(wanted, emulated=False, patience=PATIENCE)
    assert [one.facts()["backend"] for one in found] == ["nccl", "gloo", "nccl"]
    assert [one.facts()["devices"] for one in found] == [["GPU 0", "GPU 1"], ["cpu", "cpu"], ["GPU 0", "GPU 1"]]
    assert (ranks.gathered, ranks.gpus) == (1, 1)


@pytest.mark.parametrize("own", [PLENTY, GpuSupport(gpus=1, nccl=True, ranks=2)])
def test_none_works_on_a_gpu_if_one_cannot(monkeypatch: pytest.MonkeyPatch, own: GpuSupport) -> None:
    """And the reason is the same on all ranks: that of the first of them."""
    lack = "a machine has 2 ranks and 1 GPU"
    ranks = Ranks(monkeypatch, own, (lack, "cpu"), ("a machine has no GPU that torch can use", "cpu"))
    (found,) = device.devices([scenario_of(SYNCHRONOUS)], emulated=False, patience=PATIENCE)
    assert found.facts() == {"backend": "gloo", "devices": ["cpu"] * 3, "devices_because": lack}
    assert (ranks.gathered, ranks.gpus) == (1, 0)


def test_nobody_is_asked_where_no_scenario_can_use_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(monkeypatch, PLENTY, (None, "GPU 1"))
    found = device.devices([scenario_of(SYNCHRONOUS)], emulated=True, patience=PATIENCE)
    found += device.devices([scenario_of(SYNCHRONOUS, SERVER)], emulated=False, patience=PATIENCE)
    assert {one.backend for one in found} == {"gloo"}
    assert (ranks.gathered, ranks.gpus) == (0, 0)


@pytest.mark.parametrize(
    ("found", "nccl", "said", "use"),
    [
        ([], False, "none", "nothing: labs run on CPUs"),
        (["H100", "H100"], True, "H100, H100, with NCCL", "runs of up to 2 ranks without servers"),
        (["H100"], False, "H100, without NCCL", "nothing: labs run on CPUs"),
    ],
)
def test_the_doctor_says_what_a_run_would_use(found: list[str], nccl: bool, said: str, use: str) -> None:
    check = doctor.gpu_check(found, nccl=nccl)
    assert (check.ok, check.found, check.needed_for) == (True, said, use)


# The stopwatch of a GPU


class Gpu:
    """A GPU that does work later than it is asked to, and whose clock started another time and runs slow."""

    def __init__(self) -> None:
        self.now, self.free, self.waited = 1000.0, 0.0, 0

    def work(self, seconds: float) -> None:
        self.free = max(self.free, self.now) + seconds

    def event(self, *, enable_timing: bool) -> SimpleNamespace:
        assert enable_timing
        event = SimpleNamespace()

        def record() -> None:
            event.stamp = max(self.free, self.now)

        def synchronize() -> None:
            self.waited += 1
            self.now = max(self.now, event.stamp)

        def elapsed_time(other: SimpleNamespace) -> float:
            assert max(event.stamp, other.stamp) <= self.now, "torch tells only of events that are over"
            return 1e3 * (1.0 - 1e-5) * float(other.stamp - event.stamp)

        event.record, event.synchronize, event.elapsed_time = record, synchronize, elapsed_time
        return event


def test_a_gpus_moments_are_when_it_did_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu()
    monkeypatch.setattr(torch.cuda, "Event", gpu.event)
    monkeypatch.setattr(stopwatch, "time", SimpleNamespace(monotonic=lambda: gpu.now))
    watch = stopwatch.CudaStopwatch()
    for _ in range(1000):  # a clock that is 10 us per second slow never gets far
        waited, started = gpu.waited, gpu.now
        gpu.work(0.5)
        forward = watch.moment()
        gpu.work(1.0)
        backward = watch.moment()
        assert (gpu.now, gpu.waited) == (started, waited), "taking a moment holds nobody up"
        gpu.work(0.25)
        end = watch.wait()
        assert end == pytest.approx(started + 1.75)
        assert forward() == pytest.approx(started + 0.5, abs=2e-5)
        assert backward() == pytest.approx(started + 1.5, abs=2e-5)
        assert started <= forward() <= backward() <= end
        gpu.now += 3.0


def test_all_reduces_of_one_queue_begin_when_the_one_before_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def reduced(_group: object, bucket: SimpleNamespace) -> torch.futures.Future[torch.Tensor]:
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    # Ready and ended, bucket after bucket. The end of the last is told too early.
    moments = iter([1.0, 3.0, 2.0, 4.0, 6.0, 6.5, 6.25, 6.4])

    def moment() -> Callable[[], float]:
        known = next(moments)
        return lambda: known

    monkeypatch.setattr(default_hooks, "allreduce_hook", reduced)
    stream = QueueStream(scenario_of(BUCKETS), SimpleNamespace(group=None, stopwatch=SimpleNamespace(moment=moment)))
    recorder = Recorder()
    stream.record_in(recorder)
    for index in range(4):
        gradients = torch.ones(10 + index)
        bucket = SimpleNamespace(index=lambda index=index: index, buffer=lambda gradients=gradients: gradients)
        assert stream.take(bucket).wait() is gradients
        assert recorder.rows("all_reduces") == []
    stream.tell()
    assert recorder.rows("all_reduces") == [(0, 1.0, 3.0), (1, 3.0, 4.0), (2, 6.0, 6.5), (3, 6.5, 6.5)]
    assert stream.last_handed_over() == 6.25
    assert stream.shapes == {0: (10, 4), 1: (11, 4), 2: (12, 4), 3: (13, 4)}
    assert recorder.facts["reduced"] == {"calls": 4, "bytes": 4 * 46}


# Stories on a device with a group of its own


def runs(entry: tuple[str, ...] | None = None) -> list[Trace]:
    wanted = [
        scenario_of(SYNCHRONOUS),
        scenario_of(SYNCHRONOUS, workload=MODEL),
        scenario_of(LOCAL, workload=MODEL),
        scenario_of(BUCKETS, workload=MODEL),
        scenario_of(BUCKETS | {"compression": 0.5}, workload={"gradient": "64 KiB", "layers": 4}),
        scenario_of(SYNCHRONOUS, {"kind": "ring", "implementation": "schedule"}),
    ]
    return measure_all(wanted) if entry is None else measure_all(wanted, entry=entry)


def check(trace: Trace) -> None:
    """Every span where it belongs, and as many all-reduces as there were buckets."""
    assert not violations(trace)
    for worker in range(trace.workers):
        spans = trace.spans.where(trace.spans.worker == worker)
        assert (spans.end_seconds >= spans.start_seconds).all()
        reduced = spans.of_kind(SpanKind.ALL_REDUCE)
        assert (reduced.start_seconds[1:] >= reduced.end_seconds[:-1]).all()
        forwards, backwards = spans.of_kind(SpanKind.FORWARD), spans.of_kind(SpanKind.BACKWARD)
        assert (forwards.end_seconds == backwards.start_seconds).all()
    if isinstance(trace.scenario.policy, Ddp):
        # The first bucket of the last step travels while the slowest worker's backward goes on.
        of_last = trace.spans.where(trace.spans.step == trace.scenario.steps - 1)
        ends = of_last.of_kind(SpanKind.BACKWARD).end_seconds
        assert of_last.of_kind(SpanKind.ALL_REDUCE).start_seconds.min() < ends.max()


@pytest.mark.real
@pytest.mark.more
def test_a_device_with_a_group_of_its_own_runs_the_same_stories() -> None:
    """The ranks fail where a sum is wrong, or where a moment is read before the work was waited for."""
    on_cpus, late = runs(), runs(LATE)
    for one, other in zip(on_cpus, late, strict=True):
        check(one)
        check(other)
        assert other.updates.version.tolist() == one.updates.version.tolist()
        assert len(other.spans.of_kind(SpanKind.ALL_REDUCE)) == len(one.spans.of_kind(SpanKind.ALL_REDUCE))
        assert other.metadata.get("losses", []) == pytest.approx(one.metadata.get("losses", []), rel=1e-6)
    assert [trace.metadata["host"]["backend"] for trace in on_cpus] == ["gloo"] * 6
    assert [trace.metadata["host"]["backend"] for trace in late] == ["late"] * 5 + ["gloo"]
    assert late[0].metadata["host"]["devices"] == ["a GPU"] * WORKERS


# Real GPUs


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets ranks see so many of the GPUs."""
    return lambda gpus: monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus))))


def on_gpus(ranks: int) -> list[Trace]:
    cluster = {"workers": ranks, "bandwidth": "1 Gbit/s", "latency": "0 s"}
    return measure_all(
        [
            scenario_of(SYNCHRONOUS, cluster=cluster),
            scenario_of(SYNCHRONOUS, cluster=cluster, workload=MODEL),
            scenario_of(BUCKETS, cluster=cluster, workload=MODEL | {"model": "cnn"}),
        ]
    )


@pytest.mark.real
@pytest.mark.more
@pytest.mark.cuda
def test_nccl_sums_and_learns_what_gloo_does(only: Callable[[int], None]) -> None:
    ranks = min(torch.cuda.device_count(), 4)
    by_nccl = on_gpus(ranks)
    only(0)
    by_gloo = on_gpus(ranks)
    for one, other in zip(by_nccl, by_gloo, strict=True):
        check(one)
        assert (one.metadata["host"]["backend"], other.metadata["host"]["backend"]) == ("nccl", "gloo")
        assert one.metadata.get("losses", []) == pytest.approx(other.metadata.get("losses", []), rel=1e-3)


@pytest.mark.real
@pytest.mark.more
@pytest.mark.cuda
def test_two_ranks_do_not_share_a_gpu(only: Callable[[int], None]) -> None:
    only(1)
    trace = measure(scenario_of(SYNCHRONOUS, workload=MODEL))
    check(trace)
    assert trace.metadata["host"]["backend"] == "gloo"
    assert trace.metadata["host"]["devices_because"] == "a machine has 2 ranks and 1 GPU"
