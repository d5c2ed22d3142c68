"""The profile of a transformer that is computed from its dimensions and its device, and not measured.

Each block computes 2 operations for each of its parameters and each token in forward, twice that in backward, and the
products of attention beside them. Sources: Kaplan et al. 2020 (arXiv 2001.08361), section 2.1; Narayanan et al. 2021
(arXiv 2104.04473), section 5.1, for attention; Korthikanti et al. 2022 (arXiv 2205.05198), section 4.1, for memory.
"""

from __future__ import annotations

from distsim.profile import CoreSeconds, Layer, Profile
from distsim.theory.arguments import above
from distsim.theory.memory import activation_bytes, transformer_parameters

OPTIMIZER_BYTES = 28.0  # that Adam in mixed precision reads and writes for each parameter: 14 held, both ways


def transformer_profile(
    layers: int, width: int, heads: int, vocabulary: int, sequence: int, batch: int, operations_per_second: float,
    memory_bytes_per_second: float = 2e12, value_bytes: int = 2, recompute: bool = False,
) -> Profile:  # fmt: skip
    """The profile of a GPT in which each block is a layer, and the embedding of tokens and positions is the first one.

    The product with the embedding, which gives the logits, comes after the last block and counts as a part of it. Its
    gradient is added to the embedding's, so that this one is ready last.

    layers, width, heads: of the blocks. sequence: tokens of one sample. batch: samples in a step.
    operations_per_second: what the device reaches in training, for dense GPTs about half of what its maker names.
    memory_bytes_per_second: at which the optimizer reads and writes.
    value_bytes: of a parameter and of its gradient. recompute: whether backward computes each block's forward again and
    only the blocks' inputs are kept. Raises InputError where a number is not above 0.

    >>> profile = transformer_profile(layers=24, width=2048, heads=16, vocabulary=51200, sequence=2048, batch=2,
    ...                               operations_per_second=150e12)
    >>> round(profile.gradient_bytes / 2 / 1e9, 2), round(profile.step_seconds, 3)
    (1.32, 0.267)
    """
    above(
        0, batch=batch, operations_per_second=operations_per_second, memory_bytes_per_second=memory_bytes_per_second,
        value_bytes=value_bytes,
    )  # fmt: skip
    total = transformer_parameters(layers, width, vocabulary, sequence)
    embedding = (vocabulary + sequence) * width
    block = (total - embedding) // layers
    tokens = batch * sequence
    forward = (2.0 * block * tokens + 4.0 * tokens * sequence * width) / operations_per_second
    head = 2.0 * vocabulary * width * tokens / operations_per_second
    backward = (3.0 if recompute else 2.0) * forward
    found, ready = [], 2.0 * head
    for number in reversed(range(layers)):
        one = forward + (head if number == layers - 1 else 0.0)
        ready += backward
        found.append(Layer(f"block {number}", value_bytes * block, one, ready, (one, one), (ready, ready)))
    found.append(Layer("embedding", value_bytes * embedding, 0.0, ready, (0.0, 0.0), (ready, ready)))
    optimizer = total * OPTIMIZER_BYTES / memory_bytes_per_second
    kept = 2.0 * layers * tokens * width if recompute else activation_bytes(layers, width, heads, sequence, batch)
    at_once = activation_bytes(1, width, heads, sequence, batch) if recompute else 0.0
    logits = 4.0 * tokens * vocabulary
    held = 2 * value_bytes * total + kept + max(at_once, logits)
    return Profile(
        f"transformer of {layers} blocks of width {width}", tuple(found), optimizer, (optimizer, optimizer),
        CoreSeconds(0.0, 0.0, 0.0), round(held), batch, "computed", "none", steps=1,
    )  # fmt: skip
