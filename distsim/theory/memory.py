"""The memory that a model needs on a device while it trains, and the operations of its training.

The state is the parameters, their gradients and the optimizer's numbers for each parameter; its size does not depend on
the batch. Activations of the forward pass are kept for the backward pass, and their size grows with the batch.
"""

from __future__ import annotations

import math

from distsim.errors import InputError
from distsim.theory.arguments import above, at_least

FLOAT_BYTES = 4.0
SLOTS = {"sgd": 0, "momentum": 1, "adam": 2}  # numbers that an optimizer keeps for each parameter


def transformer_parameters(layers: int, width: int, vocabulary: int, context: int) -> int:
    """Parameters of a GPT: its blocks, the embeddings of tokens and of positions, and a last norm.

    The embedding of tokens is the output layer as well. Source: Radford et al. 2019, Language models are unsupervised
    multitask learners, section 2.3, counted here. layers, width: of the blocks. vocabulary: tokens. context: positions.

    >>> transformer_parameters(layers=48, width=1600, vocabulary=50257, context=1024)    # GPT-2
    1557611200
    """
    at_least(1, layers=layers, width=width, vocabulary=vocabulary, context=context)
    attention, forward, norms = 4 * width**2 + 4 * width, 8 * width**2 + 5 * width, 4 * width
    return layers * (attention + forward + norms) + (vocabulary + context + 2) * width


def state_bytes(parameters: float, optimizer: str = "adam", value_bytes: float = FLOAT_BYTES) -> float:
    """Bytes of parameters, gradients and the optimizer's numbers: 16 for each parameter with Adam, at 4 a number.

    Mixed precision takes 16 as well: 2 + 2 for what computes, and 12 for a copy in 4 bytes and Adam's numbers
    (Rajbhandari et al. 2020, ZeRO, arXiv 1910.02054, section 3.1).

    parameters: how many. optimizer: "sgd", "momentum" or "adam". value_bytes: of one number.

    >>> state_bytes(1.5e9) / 1e9
    24.0
    """
    at_least(0, parameters=parameters, value_bytes=value_bytes)
    if optimizer not in SLOTS:
        raise InputError.of("optimizer", optimizer, "is not known", f"take one of {', '.join(SLOTS)}")
    return parameters * value_bytes * (2 + SLOTS[optimizer])


def activation_bytes(layers: int, width: int, heads: int, sequence: int, batch: int) -> float:
    """Bytes that a GPT's blocks keep for the backward pass, in 2-byte numbers: L s b h (34 + 5 a s / h).

    Source: Korthikanti et al. 2022, Reducing activation recomputation in large transformer models (arXiv 2205.05198),
    section 4.1, without parallelism and without recomputing anything.

    layers: L. width: h. heads: a, of attention. sequence: s, tokens of one sample. batch: b, samples on the device.

    >>> activation_bytes(layers=48, width=1600, heads=25, sequence=1024, batch=1) / 1e9
    8.9653248
    """
    at_least(1, layers=layers, width=width, heads=heads, sequence=sequence)
    at_least(0, batch=batch)
    return layers * sequence * batch * width * (34 + 5 * heads * sequence / width)


def devices_to_hold(num_bytes: float, device_bytes: float) -> int:
    """The least number of devices that together hold `num_bytes`, without copies.

    >>> devices_to_hold(24e9, device_bytes=16e9)
    2
    """
    at_least(0, num_bytes=num_bytes)
    above(0, device_bytes=device_bytes)
    return max(1, math.ceil(num_bytes / device_bytes))


def training_operations(parameters: float, tokens: float) -> float:
    """Floating-point operations to train a dense transformer: 6 for each parameter and token.

    Two forward, a product and a sum, and twice that backward. Source: Kaplan et al. 2020, Scaling laws for neural
    language models (arXiv 2001.08361), section 2.1. Recomputing activations makes it 8.

    >>> training_operations(175e9, tokens=300e9)    # GPT-3
    3.15e+23
    """
    at_least(0, parameters=parameters, tokens=tokens)
    return 6 * parameters * tokens
