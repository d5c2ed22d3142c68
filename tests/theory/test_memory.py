"""What a model needs, against published sizes and against what torch really keeps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distsim.errors import InputError
from distsim.theory.memory import (
    activation_bytes,
    devices_to_hold,
    state_bytes,
    training_operations,
    transformer_parameters,
)

GPT = {"vocabulary": 50257, "context": 1024}


@pytest.mark.parametrize(
    ("layers", "width", "published"), [(12, 768, 124_439_808), (24, 1024, 354_823_168), (36, 1280, 774_030_080)]
)
def test_parameters_of_the_released_gpt_2(layers: int, width: int, published: int) -> None:
    assert transformer_parameters(layers, width, **GPT) == published


def test_gpt_3_has_175_billion_parameters() -> None:
    assert transformer_parameters(96, 12288, vocabulary=50257, context=2048) == pytest.approx(175e9, rel=0.005)


@pytest.mark.parametrize(("optimizer", "each"), [("sgd", 8), ("momentum", 12), ("adam", 16)])
def test_the_state_is_what_torch_keeps(optimizer: str, each: int) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(30, 20)
    made = {
        "sgd": lambda: torch.optim.SGD(model.parameters(), lr=0.1),
        "momentum": lambda: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        "adam": lambda: torch.optim.Adam(model.parameters()),
    }[optimizer]()
    model(torch.ones(1, 30)).sum().backward()
    made.step()
    kept = [one for parameter in model.parameters() for one in (parameter, parameter.grad)]
    kept += [
        value for state in made.state.values() for value in state.values()
        if torch.is_tensor(value) and value.dim() > 0
    ]  # fmt: skip
    parameters = sum(one.numel() for one in model.parameters())
    assert state_bytes(parameters, optimizer) == sum(one.nbytes for one in kept) == each * parameters


def test_activations_of_gpt_3_are_2_8_terabytes_with_64_samples() -> None:
    """Each of the 96 blocks: s b h (34 + 5 a s / h), by hand."""
    by_hand = 96 * 2048 * 64 * (34 * 12288 + 5 * 96 * 2048)
    assert activation_bytes(96, 12288, heads=96, sequence=2048, batch=64) == pytest.approx(by_hand)


@given(st.floats(0, 1e15), st.floats(1.0, 1e12))
def test_so_many_devices_hold_it_and_one_less_does_not(num_bytes: float, device_bytes: float) -> None:
    devices = devices_to_hold(num_bytes, device_bytes)
    assert devices >= 1
    assert devices * device_bytes >= num_bytes * (1 - 1e-12)
    assert devices == 1 or (devices - 1) * device_bytes < num_bytes


def test_gpt_3_takes_its_published_3640_petaflop_days() -> None:
    days = training_operations(174.6e9, tokens=300e9) / (1e15 * 86400)
    assert days == pytest.approx(3640, rel=0.005)


@pytest.mark.parametrize(
    "call",
    [
        lambda: state_bytes(-1),
        lambda: state_bytes(1, "adagrad"),
        lambda: state_bytes(math.nan),
        lambda: devices_to_hold(1, 0),
        lambda: transformer_parameters(0, 1, 1, 1),
        lambda: training_operations(1, -1),
        lambda: activation_bytes(1, 1, 0, 1, 1),
    ],
)
def test_nonsense_is_refused(call: object) -> None:
    with pytest.raises(InputError):
        call()  # type: ignore[operator]
