"""DataParallel against simulating its messages, and threads that take turns at one interpreter."""

from __future__ import annotations

import pytest

from distsim.cluster import Cluster
from distsim.collectives import Schedule, Transfer, gather, scatter
from distsim.engine import collective
from distsim.errors import InputError
from distsim.theory.data_parallel import data_parallel_step

MODEL, INPUTS, OUTPUTS = 1e8, 4e7, 6e6


def star(devices: int, reduce: bool) -> Schedule:
    """A whole model between device 0 and every other one, all at once."""
    ways = [(device, 0) if reduce else (0, device) for device in range(1, devices)]
    held = None if reduce else frozenset({(0, 0)})
    wanted = frozenset({(0, 0)}) if reduce else None
    transfers = tuple(Transfer(source, target, 0, reduce) for source, target in ways)
    return Schedule("star", devices, 1, (transfers,) if transfers else (), start=held, end=wanted)


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_every_part_against_simulating_its_messages(devices: int) -> None:
    cluster = Cluster(workers=devices, bandwidth="10 GB/s", latency="10 us")
    step = data_parallel_step(devices, 0.03, 0.06, MODEL, INPUTS, OUTPUTS, 1e10, 1e-5)
    replicate, reduce = star(devices, reduce=False), star(devices, reduce=True)
    replicate.check()
    reduce.check()
    parts = [
        (step.scatter_seconds, scatter(devices), INPUTS),
        (step.replicate_seconds, replicate, MODEL),
        (step.gather_seconds, gather(devices), OUTPUTS),
        (step.scatter_gradients_seconds, scatter(devices), OUTPUTS),
        (step.reduce_seconds, reduce, MODEL),
    ]
    sent = received = total = 0.0
    for seconds, schedule, num_bytes in parts:
        simulated = max(collective.run(schedule, cluster, num_bytes).ends_seconds)
        assert seconds == pytest.approx(simulated, rel=1e-9, abs=1e-15)
        up, down = schedule.bytes_per_link(num_bytes)
        sent, received, total = sent + up[0], received + down[0], total + simulated
    others = devices - 1
    assert sent == pytest.approx(others * (MODEL + (INPUTS + OUTPUTS) / devices))
    assert received == pytest.approx(others * (MODEL + OUTPUTS / devices))
    assert step.seconds == pytest.approx(total + 0.03 + 0.06, rel=1e-9)


def chain(devices: int, pieces: int) -> Schedule:
    """A broadcast from device to device: each passes a piece on while the next one arrives."""
    rounds = [
        tuple(
            Transfer(device, device + 1, number - device, False)
            for device in range(devices - 1)
            if 0 <= number - device < pieces
        )
        for number in range(pieces + devices - 2)
    ]
    start = frozenset((0, piece) for piece in range(pieces))
    return Schedule("chain", devices, pieces, tuple(rounds), start=start)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_with_nccl_a_model_takes_as_long_as_one_copy_however_many_devices_there_are(devices: int) -> None:
    schedule = chain(devices, pieces=1000)
    schedule.check()
    cluster = Cluster(workers=devices, bandwidth="10 GB/s", latency="0 s")
    step, plain = (
        data_parallel_step(devices, 0.03, 0.06, MODEL, INPUTS, OUTPUTS, 1e10, 0.0, nccl=nccl) for nccl in (True, False)
    )
    simulated = max(collective.run(schedule, cluster, MODEL).ends_seconds)
    assert step.replicate_seconds == step.reduce_seconds == pytest.approx(simulated, rel=1e-2)
    assert step.scatter_seconds == plain.scatter_seconds
    assert step.gather_seconds == plain.gather_seconds
    late = data_parallel_step(devices, 0.03, 0.06, MODEL, INPUTS, OUTPUTS, 1e10, 1e-3, nccl=True)
    one_piece = Cluster(workers=devices, bandwidth="10 GB/s", latency="1 ms")
    first = max(collective.run(chain(devices, pieces=1), one_piece, 0.0).ends_seconds)
    assert late.replicate_seconds == pytest.approx(step.replicate_seconds + first, rel=1e-9)


@pytest.mark.parametrize(("devices", "interpreter"), [(1, 0.05), (4, 0.0), (4, 0.005), (4, 0.02), (8, 0.01)])
def test_forward_against_threads_that_take_turns_at_one_interpreter(devices: int, interpreter: float) -> None:
    """Each thread launches 2,000 kernels; a device runs its own in order, as soon as they are launched."""
    kernels, forward = 2000, 0.03
    interpreter_clock, device_clock = 0.0, [0.0] * devices
    for _ in range(kernels):
        for device in range(devices):
            interpreter_clock += interpreter / kernels
            device_clock[device] = max(device_clock[device], interpreter_clock) + forward / kernels
    step = data_parallel_step(devices, forward, 0.06, MODEL, INPUTS, OUTPUTS, 1e10, 1e-5, interpreter)
    assert step.forward_seconds == pytest.approx(max(device_clock), rel=2e-3)


def test_one_device_talks_to_nobody() -> None:
    for nccl in (False, True):
        step = data_parallel_step(1, 0.03, 0.06, MODEL, INPUTS, OUTPUTS, 1e10, 1e-5, nccl=nccl)
        assert step.seconds == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda: data_parallel_step(0, 0.1, 0.1, 1.0, 1.0, 1.0, 1e9, 0.0), "devices = 0"),
        (lambda: data_parallel_step(2, -0.1, 0.1, 1.0, 1.0, 1.0, 1e9, 0.0), "forward_seconds = -0.1"),
        (lambda: data_parallel_step(2, 0.1, 0.1, -1.0, 1.0, 1.0, 1e9, 0.0), "parameter_bytes = -1.0"),
        (lambda: data_parallel_step(2, 0.1, 0.1, 1.0, 1.0, 1.0, 0.0, 0.0), "bytes_per_second = 0.0"),
        (lambda: data_parallel_step(2, 0.1, 0.1, 1.0, 1.0, 1.0, 1e9, 0.0, -1.0), "interpreter_seconds = -1.0"),
    ],
)
def test_numbers_that_make_no_sense(call: object, quoted: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(quoted)
    assert "Cure: " in str(caught.value)
