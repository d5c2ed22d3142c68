"""A model of one's own: each rule that it breaks ends in one message with the place in its file; and its profile."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from distsim.errors import InputError
from distsim.policies import Ddp
from distsim.profile import BusyCores, Profile
from distsim.progress import Phase, Report
from distsim.runtime.busy_profile import LAUNCHES, with_busy_cores
from distsim.runtime.devices.stopwatch import Moment, Stopwatch
from distsim.runtime.profiling.held_memory import Peak, peak_of
from distsim.runtime.profiling.own_model import OwnModel, load, resized
from distsim.runtime.profiling.profile import Timed, profile
from distsim.scenario import Scenario
from distsim.simulation import simulate
from distsim.trace import Trace
from tests.runtime.own_models import BROKEN, GOOD, GOOD_LAYERS, build

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "m.py").write_text(GOOD, "utf-8")
    return f"{tmp_path / 'm.py'}:build"


@pytest.mark.parametrize(("text", "said", "cure"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_ends_in_one_message_with_its_place(
    run: Run, tmp_path: Path, text: str, said: str, cure: str
) -> None:
    (tmp_path / "m.py").write_text(text, "utf-8")
    options = ("--steps", 1, "--busy", 1, "--out", tmp_path / "p.json")
    code, out, err = run("profile", f"{tmp_path / 'm.py'}:build", *options)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err
    assert cure in err.partition("Cure: ")[2]
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize(
    ("spec", "said"),
    [("absent.py:build", "there is no such file"), ("m.py", "names no function"), ("m.py:", "names no function"),
     (":build", "names no function"), ("m.txt:build", "names no function"), ("m.py:1x", "names no function")],
)  # fmt: skip
def test_what_names_no_function_is_refused(run: Run, spec: str, said: str) -> None:
    code, _, err = run("profile", spec)
    assert code == 2
    assert said in err


def test_a_file_may_import_its_neighbours_and_leaves_the_path_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text(GOOD, "utf-8")
    (tmp_path / "m.py").write_text("from beside_it import build\n", "utf-8")
    before = list(sys.path)
    assert load(f"{tmp_path / 'm.py'}:build").samples == 6
    assert sys.path == before
    del sys.modules["beside_it"]


def test_equal_seeds_give_equal_parameters(model: str) -> None:
    def first(seed: int) -> torch.Tensor:
        return next(iter(load(model, seed=seed).layers.values()))

    assert torch.equal(first(3), first(3))
    assert not torch.equal(first(3), first(4))


def test_a_profile_has_each_parameter_that_gets_a_gradient_once(model: str) -> None:
    found = profile(model, steps=3, warm_up=1)
    assert {layer.name for layer in found.layers} == GOOD_LAYERS
    assert {layer.name: layer.bytes for layer in found.layers}["first.weight"] == 4 * 8 * 16
    assert [layer.name for layer in found.layers][:2] in (["last.bias", "last.weight"], ["last.weight", "last.bias"])
    assert (found.batch, found.device, found.steps, found.torch) == (6, "cpu", 3, torch.__version__)
    assert found.peak_bytes > 2 * found.gradient_bytes
    for seconds in (found.forward_seconds, found.backward_seconds, found.optimizer_seconds):
        assert 0.0 < seconds < 1.0
    for layer in found.layers:
        assert layer.ready_quartiles[0] <= layer.ready_seconds <= layer.ready_quartiles[1]
        assert layer.forward_quartiles[0] <= layer.forward_seconds * (1 + 1e-9)


DEEP = """\
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(size, size) for size in (64, 1024, 64))
        self.between = nn.Linear(64, 1024)
        self.after = nn.Linear(1024, 64)
    def forward(self, inputs):
        return self.parts[2](self.after(self.parts[1](self.between(self.parts[0](inputs))))).mean()
def build():
    return Model(), (torch.ones(256, 64),)
"""


def test_a_profile_tells_when_backward_first_needs_each_layer(model: str) -> None:
    """The last layer's weights pass the first gradient on. Nothing asks for the gradient of the inputs."""
    found = profile(model, steps=3, warm_up=1)
    ahead = {layer.name: (layer.needed_ahead, number) for number, layer in enumerate(found.layers)}
    needed, number = ahead.pop("last.weight")
    assert needed == number > 0
    assert {needed for needed, _ in ahead.values()} == {0}


USED_TWICE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.Linear(8, 8, bias=False), nn.Linear(8, 8)
        self.shared = nn.Parameter(torch.eye(8))

    def forward(self, inputs):
        return (self.between(self.before(inputs) @ self.shared) @ self.shared).square().mean()

def build():
    return Model(), (torch.ones(6, 8),)
"""


def test_what_backward_uses_twice_is_needed_from_the_first_use_on(tmp_path: Path) -> None:
    """Before the two gradients of the layer between both uses, and again in its own turn."""
    (tmp_path / "twice.py").write_text(USED_TWICE, "utf-8")
    found = profile(f"{tmp_path / 'twice.py'}:build", steps=3, warm_up=1)
    ahead = {layer.name: layer.needed_ahead for layer in found.layers}
    assert [layer.name for layer in found.layers[2:]] == ["shared", "before.weight"]
    assert (ahead["shared"], ahead["before.weight"]) == (2, 0)


def test_times_belong_to_the_layers_that_take_them(tmp_path: Path) -> None:
    """The layer in the middle has 16 times the work of its neighbours, forward and backward."""
    (tmp_path / "m.py").write_text(DEEP, "utf-8")
    found = profile(f"{tmp_path / 'm.py'}:build", steps=7)
    layers = {layer.name: layer for layer in found.layers}
    names = [layer.name.removesuffix(".weight") for layer in found.layers if layer.name.endswith("weight")]
    assert names == ["parts.2", "after", "parts.1", "between", "parts.0"]
    middle = layers["parts.1.weight"]
    assert middle.forward_seconds > 0.5 * found.forward_seconds
    before = layers["after.weight"]
    assert middle.ready_seconds - before.ready_seconds > 0.4 * found.backward_seconds


RECOMPUTED = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
NOTHING_DRAWN = {"use_reentrant": False, "preserve_rng_state": False}  # so no state of random numbers is kept
class Model(nn.Module):
    def __init__(self, again):
        super().__init__()
        self.again = again
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8)) for _ in range(5))
    def forward(self, inputs):
        for block in self.blocks:
            inputs = checkpoint(block, inputs, **NOTHING_DRAWN) if self.again else block(inputs)
        return inputs.square().mean()
def build():
    return Model(False), (torch.ones(100, 8),)
def recomputed():
    return Model(True), (torch.ones(100, 8),)
"""


class Counted(Stopwatch):
    """Tells how many moments were taken before, in place of seconds."""

    taken = 0

    def moment(self) -> Moment:
        self.taken += 1
        now = self.taken
        return lambda: float(now)


def test_what_backward_computes_again_is_no_forward(tmp_path: Path) -> None:
    """Between the beginning and the end of forward, each module has its outputs once."""
    (tmp_path / "m.py").write_text(RECOMPUTED, "utf-8")
    for function in ("build", "recomputed"):
        step = Timed(load(f"{tmp_path / 'm.py'}:{function}"), Counted()).step(hooked=True)
        assert step.forward == len(step.modules) + 1 == 11
        assert set(step.modules.values()) == {1.0}


def peak_by_torch(own: OwnModel, folder: Path) -> int:
    """The most bytes at once that torch's allocator gave to a step, by torch's profiler."""
    own.backward(own.loss())  # gradients are there from now on
    for parameter in own.layers.values():
        assert parameter.grad is not None
        parameter.grad.zero_()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as found:
        own.backward(own.loss())
    found.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]")
    return int(max(np.cumsum([num_bytes for _, num_bytes in changes])))


@pytest.mark.parametrize("function", ["build", "recomputed"])
def test_the_peak_is_that_of_torchs_allocator_beside_what_is_always_there(tmp_path: Path, function: str) -> None:
    (tmp_path / "m.py").write_text(RECOMPUTED, "utf-8")
    spec = f"{tmp_path / 'm.py'}:{function}"
    state = 2 * 4 * 5 * (8 * 32 + 32 + 32 * 8 + 8)  # parameters and gradients
    batch = 4 * 100 * 8
    assert peak_of(load(spec)).whole == state + batch + peak_by_torch(load(spec), tmp_path)


def test_a_model_that_recomputes_activations_holds_less(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(RECOMPUTED, "utf-8")
    whole, recomputed = (peak_of(load(f"{tmp_path / 'm.py'}:{name}")).whole for name in ("build", "recomputed"))
    inside = 4 * 100 * 32  # of a block: tanh needs its outputs, and the second Linear its inputs, the same tensor
    assert whole - recomputed >= 3 * inside


WIDE = """\
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, width, twice):
        super().__init__()
        self.layer, self.twice = nn.Linear(width, width, bias=False), twice
    def forward(self, inputs):
        hidden = self.layer(inputs)
        return (self.layer(hidden) if self.twice else hidden).sum()
def build():
    return Model(300, False), (torch.ones(2, 300),)
def tied():
    return Model(300, True), (torch.ones(2, 300),)
def narrow():
    return Model(3, False), (torch.ones(20000, 3),)
"""


@pytest.mark.parametrize(
    ("function", "made", "passing"),
    [  # floats of what the operations make, and how many fewer they are without the gradient that passes
        ("build", 90_000 + 2, 90_000 + 2 - (600 + 1)),  # a gradient, the loss and its own gradient; an output, the loss
        ("tied", 3 * 90_000 + 2, 90_000 - 600),  # a gradient of each use, and their sum, which passes
        ("narrow", 60_000 + 1, 0),  # the output, and the loss; there is no gradient yet
    ],
)
def test_a_weights_new_gradient_passes_until_it_is_added(
    tmp_path: Path, function: str, made: int, passing: int
) -> None:
    (tmp_path / "m.py").write_text(WIDE, "utf-8")
    own = load(f"{tmp_path / 'm.py'}:{function}")
    always = own.batch[0].numel() + 2 * sum(one.numel() for one in own.layers.values())
    assert peak_of(own) == Peak(4 * (always + made), 4 * passing, 0)
    assert not any(one._backward_hooks for one in own.layers.values()), "timed steps would call it"


FROZEN = """\
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(30, 20), nn.BatchNorm1d(20), nn.Linear(20, 2)
        self.first.weight.requires_grad = False
        self.register_buffer("table", torch.ones(7, dtype=torch.float64), persistent=False)
        self.register_buffer("view", self.last.weight.detach()[0])
    def forward(self, inputs):
        return self.last(self.norm(self.first(inputs))).sum()
def build():
    return Model(), (torch.randn(5, 30),)
"""


def test_frozen_parameters_and_buffers_are_counted_apart(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(FROZEN, "utf-8")
    code, out, _ = run("profile", f"{tmp_path / 'm.py'}:build", "--steps", 1, "--busy", 1, "--json")
    assert code == 0
    means_and_variances, batches = 2 * 4 * 20, 8
    assert json.loads(out)["frozen_bytes"] == 4 * 30 * 20 + means_and_variances + batches + 7 * 8


@pytest.mark.parametrize("samples", [1, 6, 20])
def test_the_batch_is_repeated_or_cut(run: Run, model: str, samples: int) -> None:
    code, out, _ = run("profile", model, "--batch", samples, "--steps", 1, "--busy", 1, "--json")
    assert code == 0
    assert json.loads(out)["batch"] == samples


def test_a_batch_is_cut_in_the_order_of_its_samples() -> None:
    rows, numbers = resized("m.py:build", (torch.arange(6).view(3, 2), torch.arange(3)), 4)
    assert rows.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1]]
    assert numbers.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("shapes", ["(3, 4), (2,)", "(3, 4), ()", "(0, 4),"])
def test_tensors_of_other_lengths_have_no_number_of_samples(run: Run, tmp_path: Path, shapes: str) -> None:
    (tmp_path / "m.py").write_text(
        build(f"return LINEAR, tuple(torch.ones(shape) for shape in ({shapes}))"), "utf-8"
    )  # fmt: skip
    code, _, err = run("profile", f"{tmp_path / 'm.py'}:build", "--batch", 5)
    assert code == 2
    assert "a batch of 5 samples needs tensors of one length" in err


def test_the_command_writes_and_prints_the_profile(run: Run, model: str, tmp_path: Path) -> None:
    noisy = Path(model.rpartition(":")[0])
    noisy.write_text("print('loading')\n" + GOOD, "utf-8")
    code, out, err = run("profile", model, "--steps", 2, "--busy", 1, "--out", tmp_path / "p.json", "--json")
    assert (code, err) == (0, "loading\n")
    assert Profile.loads(out) == Profile.load(tmp_path / "p.json")
    code, out, _ = run("profile", model, "--steps", 2, "--busy", 1)
    assert code == 0
    assert all(name in out for name in GOOD_LAYERS)
    assert "all layers" in out


@pytest.mark.real
@pytest.mark.parametrize("workers", [1, *(pytest.param(workers, marks=pytest.mark.thorough) for workers in (2, 3))])
def test_the_pace_of_busy_cores_is_that_of_real_runs(model: str, workers: int) -> None:
    """One worker is never slower than as many as there are cores, but for the noise of a busy machine.

    The commands of the page of your own model measure it as well.
    """
    alone = profile(model, steps=1, warm_up=1)
    found = with_busy_cores(alone, model, workers=workers, steps=3)
    if workers == 1:
        assert found == alone
        return
    assert found.busy is not None
    assert found.busy.workers == workers
    assert 0.0 < found.busy.pace < 10.0
    assert found.busy.shared_pace is not None
    assert 0.0 < found.busy.shared_pace < 10.0
    assert found.ddp_seconds is not None
    assert found.ddp_seconds > 0.0
    assert replace(found, ddp_seconds=None, busy=None) == alone


CALL = 0.0004  # core-seconds of an all-reduce


def test_the_paces_are_the_ratios_of_the_runs(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs are replaced by simulated ones: 2 ms alone, 3 ms a step under DDP, 5 ms on own cores, 8 ms on shared."""
    cores = os.sched_getaffinity(0)
    asked: list[tuple[int, int]] = []

    def measured(scenarios: list[Scenario], *, progress: Report, **_: object) -> list[Trace]:
        found = []
        progress(Phase.counted("step", 1, 2))
        for scenario in scenarios:
            workers, on_cores = scenario.cluster.workers, len(os.sched_getaffinity(0))
            asked.append((workers, on_cores))
            assert isinstance(scenario.policy, Ddp)
            exchanges = scenario.policy.accumulate == 1
            mean = 3 if exchanges else {1: 2, 3: 5, 4: 8}[workers]
            table = scenario.table() | {"workload": {"gradient": "1 kB"}, "compute": {"mean": f"{mean} ms"}}
            found.append(simulate(Scenario.of(table)))
            found[-1].metadata["exchange_core_seconds"] = [CALL] * len(found[-1].updates)
        return found

    monkeypatch.setattr("distsim.runtime.busy_profile.measure_all", measured)
    told: list[Phase] = []
    found = with_busy_cores(profile(model, steps=1, warm_up=1), model, workers=3, steps=3, report=told.append)
    assert [phase.doing for phase in told] == [f"run {number} of 9: step 1 of 2" for number in range(1, 10)]
    assert [phase.share for phase in told] == pytest.approx([(number + 0.5) / 9 for number in range(9)], abs=1e-3)
    assert len({phase.seconds for phase in told}) == 1
    own, shared = min(3, len(cores)), min(2, len(cores))
    assert found.busy == BusyCores(3, pytest.approx(3 / own * 2 / 5), pytest.approx(4 / shared * 2 / 8))
    assert found.ddp_seconds == pytest.approx(0.003 - CALL)
    assert asked == LAUNCHES * [(1, len(cores)), (1, len(cores)), (3, len(cores)), (4, shared)]
    assert os.sched_getaffinity(0) == cores, "the caller's own cores are as before"


@pytest.mark.skipif(torch.cuda.is_available(), reason="the machine has a GPU")
def test_a_machine_without_a_gpu_says_so(run: Run, model: str) -> None:
    code, _, err = run("profile", model, "--device", "cuda")
    assert code == 2
    assert "device = 'cuda': is no device of this machine. Cure: take" in err


@pytest.mark.cuda
def test_a_profile_of_a_gpu(model: str) -> None:
    found = profile(model, device="cuda", steps=3)
    assert found.device == torch.cuda.get_device_name()
    assert 0.0 < found.forward_seconds < 1.0
    assert {layer.name for layer in found.layers} == GOOD_LAYERS


def test_bad_values_in_python_are_refused(model: str) -> None:
    with pytest.raises(InputError, match="names no function"):
        load("nothing")
    with pytest.raises(InputError, match="needs tensors of one length"):
        resized(model, (torch.tensor(1.0),), 3)
