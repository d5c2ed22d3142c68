"""A profile from a trace of torch.profiler: a real trace of this machine's CPU, and one written by hand for a GPU."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from distsim.errors import InputError
from distsim.profile import Profile
from distsim.profiler_trace import read_profiler_trace

Run = Callable[..., tuple[int, str, str]]
Event = dict[str, Any]
STEPS = 3


def network() -> nn.Module:
    """Three layers, the first of them frozen; the middle one has most of the work."""
    layers = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 8, bias=False))
    layers[0].requires_grad_(False)
    return layers


def recorded(path: Path, *, shapes: bool = True, tell_steps: bool = True, left_out: int = 0) -> Path:
    """A trace of STEPS steps, after two that the profiler leaves out. left_out: of the last steps."""
    network_, batch = network(), torch.ones(256, 32)
    learning = [one for one in network_.parameters() if one.requires_grad]
    optimizer = torch.optim.SGD(learning, lr=1e-6)
    plan = torch.profiler.schedule(wait=1, warmup=1, active=STEPS) if tell_steps else None
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], schedule=plan, record_shapes=shapes, profile_memory=shapes
    ) as found:
        for _ in range(2 + STEPS - left_out):
            optimizer.zero_grad()
            network_(batch).mean().backward()
            optimizer.step()
            if tell_steps:
                found.step()
    found.export_chrome_trace(str(path))
    return path


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("profiler") / "trace.json")


def test_a_last_step_in_which_the_profiler_stopped_does_not_count(tmp_path: Path) -> None:
    """Each step ends with the begin of another one."""
    assert read_profiler_trace(recorded(tmp_path / "t.json", left_out=1), 256).steps == STEPS - 1
    with pytest.raises(InputError, match="has a step without backward"):
        read_profiler_trace(recorded(tmp_path / "t.json", left_out=STEPS), 256)


def test_a_real_trace_has_each_gradient_in_its_order_and_its_bytes(real: Path) -> None:
    found = read_profiler_trace(real, 256)
    assert [layer.bytes for layer in found.layers] in (
        [4 * 8 * 1024, 4 * 1024, 4 * 1024 * 64], [4 * 8 * 1024, 4 * 1024 * 64, 4 * 1024]
    )  # fmt: skip
    assert found.layers[0].name == "gradient 1 (8 x 1024)"
    assert (found.batch, found.device, found.steps, found.busy) == (256, "cpu", STEPS, None)
    assert found.peak_bytes > found.gradient_bytes


def test_the_times_of_a_real_trace_are_most_of_its_steps(real: Path) -> None:
    found = read_profiler_trace(real, 256)
    events = json.loads(real.read_text("utf-8"))["traceEvents"]
    whole = sorted(event["dur"] for event in events if event["name"].startswith("ProfilerStep") and "dur" in event)
    assert 0.3 * whole[0] < 1e6 * found.step_seconds <= whole[-1]
    assert min(found.forward_seconds, found.backward_seconds, found.optimizer_seconds) > 0.0
    after = {layer.bytes: layer for layer in found.layers}
    assert after[4 * 8 * 1024].ready_seconds < after[4 * 1024 * 64].ready_seconds


def test_a_packed_trace_is_the_same(real: Path, tmp_path: Path) -> None:
    packed = tmp_path / "trace.json"
    packed.write_bytes(gzip.compress(real.read_bytes()))
    assert read_profiler_trace(packed, 1) == read_profiler_trace(real, 1)


def event(name: str, ts: float, dur: float, cat: str = "cpu_op", **args: Any) -> Event:
    return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "args": args}


def launch(ts: float, number: int, begin: float, end: float, name: str = "gemm") -> list[Event]:
    """A kernel that the CPU launches at `ts` and that the GPU runs from begin to end."""
    return [
        event("cudaLaunchKernel", ts, 1, "cuda_runtime", correlation=number),
        event(name, begin, end - begin, "kernel", correlation=number),
    ]


def gradient(ts: float, size: int) -> Event:
    return event("torch::autograd::AccumulateGrad", ts, 1, **{"Input Dims": [[size]], "Input type": ["c10::Half"]})


def gpu_step(number: int, begin: float) -> list[Event]:
    """One step in microseconds. The CPU is ahead: the GPU works from 10 until 900, and the exchange until 2000.

    forward 5 to 110 (layer of sequence 1) and to 310 (sequence 2); backward to 510 (gradient of sequence 2) and to 810
    (of sequence 1), the optimizer to 900.
    """
    backward = "autograd::engine::evaluate_function: AddmmBackward0"
    found = [
        event(f"ProfilerStep#{number}", 0, 3000, "user_annotation"),
        event("aten::linear", 5, 10, **{"Sequence number": 1}), *launch(8, 1, 10, 110),
        event("aten::linear", 16, 10, **{"Sequence number": 2}), *launch(20, 2, 110, 310),
        event(backward, 30, 10, **{"Sequence number": 2}), *launch(32, 3, 310, 510), gradient(41, 100),
        *launch(43, 4, 510, 2000, "ncclDevKernel_AllReduce_Sum_f16"),
        event(backward, 45, 10, **{"Sequence number": 1}), *launch(47, 5, 510, 810), gradient(56, 300),
        event("Optimizer.step#Adam.step", 60, 20, "user_annotation"), *launch(65, 6, 810, 900),
    ]  # fmt: skip
    for one in found:
        one["ts"] += begin
        if "correlation" in one["args"]:
            one["args"] = {"correlation": 100 * number + one["args"]["correlation"]}
    return found


def written(path: Path, events: list[Event], **more: Any) -> Path:
    path.write_text(json.dumps({"traceEvents": events} | more), "utf-8")
    return path


def test_on_a_gpu_the_times_are_those_of_its_kernels(tmp_path: Path) -> None:
    steps = [gpu_step(number, 5000.0 * number) for number in (1, 2)]
    path = written(tmp_path / "gpu.json", [one for step in steps for one in step], deviceProperties=[{"name": "X1"}])
    found = read_profiler_trace(path, 8)
    assert [(layer.name, layer.bytes) for layer in found.layers] == [
        ("gradient 1 (100)", 200), ("gradient 2 (300)", 600)
    ]  # fmt: skip
    assert [layer.ready_seconds for layer in found.layers] == pytest.approx([200e-6, 500e-6])
    assert [layer.forward_seconds for layer in found.layers] == pytest.approx([200e-6, 105e-6])
    assert (found.optimizer_seconds, found.device, found.batch) == (pytest.approx(90e-6), "X1", 8)


def test_the_command_writes_the_profile(run: Run, real: Path, tmp_path: Path) -> None:
    code, out, err = run("profile", "--trace", real, "--batch", 256, "--out", tmp_path / "p.json")
    profile = read_profiler_trace(real, 256)
    warnings = "".join(f"distsim: warning: {warning}\n" for warning in profile.warnings())  # some, on a busy machine
    assert (code, err) == (0, warnings)
    assert "gradient 1 (8 x 1024)" in out
    assert "torch" not in out
    assert Profile.load(tmp_path / "p.json") == profile


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "missing argument 'FILE:FUNCTION', or --trace"), (("--trace", "t.json"), "add --batch 32"),
     (("m.py:build", "--trace", "t.json", "--batch", 1), "leave FILE:FUNCTION out")],
)  # fmt: skip
def test_what_to_profile_is_said_once(run: Run, arguments: tuple[object, ...], said: str) -> None:
    code, _, err = run("profile", *arguments)
    assert code == 2
    assert said in err


def test_what_a_trace_must_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not tell the shapes of the gradients.*Cure: .*record_shapes=True"):
        read_profiler_trace(recorded(tmp_path / "shapeless.json", shapes=False), 1)
    with pytest.raises(InputError, match=r"has no step.*Cure: .*call prof\.step\(\) after each step"):
        read_profiler_trace(recorded(tmp_path / "stepless.json", tell_steps=False), 1)


def one_step(*left_out: str, **changed: Any) -> list[Event]:
    kept = [one for one in gpu_step(1, 0.0) if not one["name"].startswith(left_out)] if left_out else gpu_step(1, 0.0)
    for one in kept:
        if one["name"].endswith("AccumulateGrad"):
            one["args"] = one["args"] | changed
    return kept


BAD: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "is not a trace of torch.profiler"),
    "no trace": (b"[]", "is not a trace of torch.profiler"),
    "no events": (b'{"traceEvents": []}', "has no step"),
    "half of a packed file": (gzip.compress(b"{}" * 1000)[:30], "cannot be read"),
    "no backward": (json.dumps({"traceEvents": one_step("torch::")}).encode(), "has a step without backward"),
    "no forward": (json.dumps({"traceEvents": one_step("aten::")}).encode(), "has a step without forward"),
    "numbers of no known size": (
        json.dumps({"traceEvents": one_step(**{"Input type": ["c10::new"]})}).encode(), "of type c10::new"
    ),
    "steps that differ": (
        json.dumps({"traceEvents": [*gpu_step(1, 0.0), *(
            one for one in gpu_step(2, 5000.0) if one["args"].get("Input Dims") != [[100]]
        )]}).encode(),
        "has steps that differ in their gradients",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_a_file_that_tells_no_profile_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_profiler_trace(path, 1)
    assert said in str(raised.value)
    assert "Cure: " in str(raised.value)
