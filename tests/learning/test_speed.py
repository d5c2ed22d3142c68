"""How fast models are replayed; `distsim bench` has the figure of the quadratic, which needs no torch."""

from __future__ import annotations

import pytest

from distsim import simulate
from distsim.learning.optimizers import Sgd
from distsim.learning.replay import replay
from distsim.learning.torch_model import TorchModel
from distsim.speed.catalogue import ASYNCHRONOUS, training
from distsim.speed.figure import Duration, Work

TRIES = 2  # machines are shared: one more try before it counts


def replay_the_mlp() -> Work:
    trace, objective = simulate(training(ASYNCHRONOUS, workers=8, steps=250)), TorchModel.of("mlp")
    return lambda: replay(trace, objective, Sgd(rate=0.05), batch=32)


def test_2000_updates_of_the_mlp_take_two_seconds() -> None:
    figure = Duration("Replay of a trace", "2,000 asynchronous updates of the MLP, batch 32", 2.0, replay_the_mlp)
    seen = []
    for _ in range(TRIES):
        seen.append(figure.measure(rounds=2).value)
        if seen[-1] <= figure.seconds:
            return
    pytest.fail(f"{seen} s, at most {figure.seconds} expected")
