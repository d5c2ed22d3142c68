"""Real runs of a model of one's own learn what one process learns; their prediction takes the model's profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distsim.errors import InputError
from distsim.experiment import predict_and_measure
from distsim.runtime.measure import measure, measure_all
from distsim.runtime.profiling.own_model import load
from distsim.runtime.profiling.profile import profile
from distsim.runtime.ranks.task import OWN_LEARNING_RATE
from distsim.scenario import Scenario
from distsim.trace import SpanKind
from tests.runtime.own_models import BROKEN, GOOD

STEPS, SEED = 8, 11
SERVER = {"kind": "parameter_server"}
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "synchronous": ({"kind": "synchronous"}, {"kind": "ring"}),
    "by a tree": ({"kind": "synchronous"}, {"kind": "tree", "implementation": "schedule"}),
    "local sgd": ({"kind": "local_sgd", "period": 1}, {"kind": "ring"}),
    "ddp": ({"kind": "ddp", "bucket": "300 B", "first_bucket": "300 B"}, {"kind": "ring"}),
    "a server": ({"kind": "synchronous"}, SERVER),
    "two servers": ({"kind": "synchronous"}, SERVER | {"servers": 2, "colocated": True}),
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.py"
    path.write_text(GOOD, "utf-8")
    return path


def scenario(model: Path, policy: dict[str, Any], communication: dict[str, Any], **tables: Any) -> Scenario:
    table = {
        "steps": STEPS,
        "seed": SEED,
        "cluster": {"workers": 2, "bandwidth": "1 Gbit/s", "latency": "100 us"},
        "workload": {"model": f"{model.name}:build"},
        "policy": policy,
        "communication": communication,
    }
    return Scenario.of(table | tables, folder=model.parent)


def alone(model: Path, steps: int) -> list[float]:
    """The losses of plain SGD in one process. All workers have one batch, so their mean gradient is this gradient."""
    own = load(f"{model}:build", seed=SEED)
    optimizer = torch.optim.SGD(own.layers.values(), lr=OWN_LEARNING_RATE)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = own.module(*own.batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.real
@pytest.mark.parametrize("run", ["ddp", *(pytest.param(run, marks=pytest.mark.more) for run in RUNS if run != "ddp")])
def test_workers_learn_what_one_process_learns(model: Path, run: str) -> None:
    """Tied and frozen parameters too."""
    trace = measure(scenario(model, *RUNS[run]))
    expected = alone(model, STEPS)
    assert expected[-1] < expected[0]
    assert trace.metadata["losses"] == pytest.approx(expected, rel=1e-5)
    assert trace.scenario.gradient_bytes == 4 * sum(one.numel() for one in load(f"{model}:build").layers.values())
    for kind in (SpanKind.FORWARD, SpanKind.BACKWARD):
        assert len(trace.spans.of_kind(kind)) == 2 * STEPS


COUNTED = """\
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.register_buffer("calls", torch.tensor(0))
        self.register_buffer("mean", torch.zeros(4), persistent=False)
    def forward(self, inputs):
        self.calls += 1
        hidden = self.layer(inputs)
        self.mean = 0.9 * self.mean + 0.1 * hidden.detach().mean(dim=0)
        return self.calls + (hidden - self.mean).square().mean()
def build():
    return Model(), (torch.ones(6, 8),)
"""


@pytest.mark.real
@pytest.mark.more
def test_a_run_begins_with_the_buffers_that_were_built(tmp_path: Path) -> None:
    """The warm-up changes them, and each policy has another one."""
    path = tmp_path / "m.py"
    path.write_text(COUNTED, "utf-8")
    runs = {name: RUNS[name] for name in ("synchronous", "local sgd", "ddp")}
    runs |= {f"stage {stage}": ({"kind": "sharded", "stage": stage}, {"kind": "ring"}) for stage in (1, 3)}
    for name, trace in zip(runs, measure_all([scenario(path, *run) for run in runs.values()]), strict=True):
        assert np.ravel(trace.metadata["losses"]) == pytest.approx(alone(path, STEPS), rel=1e-6), name
    assert measure(scenario(path, *RUNS["a server"])).metadata["losses"] == pytest.approx(alone(path, STEPS), rel=1e-6)


@pytest.mark.real
@pytest.mark.more
def test_drawn_time_comes_on_top_and_accumulated_gradients_are_learned_at_once(model: Path) -> None:
    policies = [{"kind": "ddp", "accumulate": 2}, {"kind": "local_sgd", "period": 4}]
    compute = {"mean": "12 ms"}
    traces = measure_all([scenario(model, policy, {"kind": "ring"}, compute=compute) for policy in policies])
    for trace in traces:
        assert trace.total_seconds > STEPS * 12e-3
    assert traces[1].metadata["losses"] == pytest.approx(np.reshape(alone(model, STEPS), (2, 4)).mean(axis=1), rel=1e-5)
    backward = traces[0].spans.of_kind(SpanKind.BACKWARD)
    assert (backward.end_seconds - backward.start_seconds).min() >= 0.99 * 8e-3


@pytest.mark.real
def test_a_comparison_takes_the_model_for_real_and_the_profile_for_the_prediction(model: Path) -> None:
    path = model.parent / "profile.json"
    known = profile(f"{model}:build", batch=3)
    known.save(path)
    workload = {"model": "m.py:build", "profile": "profile.json"}
    experiment = predict_and_measure(scenario(model, {"kind": "ddp"}, {"kind": "ring"}, workload=workload))
    forward = experiment.predicted.spans.of_kind(SpanKind.FORWARD)
    assert forward.end_seconds - forward.start_seconds == pytest.approx(known.forward_seconds + known.optimizer_seconds)
    assert len(experiment.measured.metadata["losses"]) == STEPS
    assert experiment.measured.scenario.workload.batch == 3


def test_a_comparison_without_a_profile_says_so_before_anything_runs(model: Path) -> None:
    with pytest.raises(InputError, match=r"run distsim profile m\.py:build"):
        predict_and_measure(scenario(model, {"kind": "ddp"}, {"kind": "ring"}))


@pytest.mark.parametrize(
    "rule", ["an error on import", "an unused parameter", "an error in forward", "outputs, no loss"]
)
def test_a_broken_rule_is_told_before_processes_start(model: Path, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen.__init__", started)
    text, said, _ = BROKEN[rule]
    model.write_text(text, "utf-8")
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
        measure(scenario(model, {"kind": "synchronous"}, {"kind": "ring"}))


def other_profile(model: Path) -> Scenario:
    table = profile(f"{model}:build", steps=1, warm_up=0).as_dict()
    table["layers"][0]["bytes"] += 4
    (model.parent / "profile.json").write_text(json.dumps(table), "utf-8")
    workload = {"model": "m.py:build", "profile": "profile.json"}
    return scenario(model, {"kind": "synchronous"}, {"kind": "ring"}, workload=workload)


def halved(model: Path) -> Scenario:
    model.write_text(GOOD.replace("return Model(), (torch.ones(6, 8), torch.zeros(6, 8))",
                                  "half = torch.bfloat16\n    return Model().to(half), (torch.ones(6, 8, dtype=half), "
                                  "torch.zeros(6, 8, dtype=half))"), "utf-8")  # fmt: skip
    return scenario(model, {"kind": "synchronous"}, {"kind": "ring"})


@pytest.mark.parametrize(
    ("made", "said"),
    [(other_profile, r"has \d+ bytes, and \d+ in the profile of m.py:build. Cure: run distsim profile again"),
     (halved, r"m.py:\d+: parameter first.weight is torch.bfloat16, no torch.float32. Cure: build the module")],
)  # fmt: skip
def test_what_no_real_run_could_learn_is_refused(model: Path, made: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        measure(made(model))


@pytest.mark.parametrize("policy", [{"kind": "flexrr", "group": 1}, {"kind": "pipeline", "micro_batches": 2}])
def test_a_policy_whose_real_run_takes_no_model_says_so(model: Path, policy: dict[str, Any]) -> None:
    communication = {"kind": "ring"} if policy["kind"] == "pipeline" else SERVER
    workload = {"model": "m.py:build", "activation": "1 kB"}
    with pytest.raises(InputError, match=r"workload.model = .*m\.py:build.*cannot be run for real"):
        measure(scenario(model, policy, communication, workload=workload))
