"""Megatron's published scaling efficiency beside that of the formulas for tensor and data parallel training.

Source of the measurements, the models and the machine: Shoeybi et al. 2019, Megatron-LM (arXiv 1909.08053), section
5.1, table 1 and figure 5. The operations of a step count each block's forward twice, as it is computed again for the
backward: 62.4 teraFLOP/s and 1.288 s a step of the smallest model, published later (nv-adlr.github.io/MegatronLMV1),
are 8 operations for each parameter and token.
"""

from __future__ import annotations

from distsim.accuracy.published import Row, percent
from distsim.theory.tensor import tensor_link_bytes
from distsim.transformer_profile import transformer_profile

SOURCE = "Shoeybi et al. 2019, Megatron-LM (arXiv 1909.08053), table 1 and figure 5 (DGX-2H, V100, batch 8 a group)"
# Width, heads, blocks, GPUs that share a model; then the efficiency in % with one such group, and with 64.
PUBLISHED = (
    (1536, 16, 40, 1, 100, 96),
    (1920, 20, 54, 2, 95, 83),
    (2304, 24, 64, 4, 82, 79),
    (3072, 32, 72, 8, 77, 74),
)
GROUPS, BATCH, SEQUENCE, VOCABULARY, VALUE_BYTES = 64, 8, 1024, 51_200, 2
OPERATIONS_PER_SECOND = 39e12  # that the smallest model reaches on one GPU
GPU_BYTES_PER_SECOND = 150e9  # each way, of the 300 GB/s between the GPUs of a node
NODE_BYTES_PER_SECOND = 100e9  # of the 8 adapters of a node
SUMS = 6 / 4  # of activations: in forward, in the forward that is computed again, and in backward
MISSING = (
    "kernels: a GPU multiplies narrower matrices, and reaches fewer operations in a second",
    "links: sums of some tens of megabytes do not reach the named bandwidth, and each has a latency",
    "overlap: how much of the gradients' exchange is hidden is not published; here nothing is",
)


def megatron() -> list[Row]:
    """Weak scaling: a group shares a model whose size grows with the group. Efficiencies are in percent of one GPU's.

    A step computes, sums activations in the group, and then sums gradients between 64 groups. The GPUs of a node that
    have different parts of a model sum these at once, and share the node's adapters.

    >>> for row in megatron():
    ...     print(row["gpus"], row["published_pct"], round(row["model_pct"]), round(row["error_pct"]))
    1 100 100 0
    64 96 98 2
    2 95 97 2
    128 83 93 12
    4 82 93 13
    256 79 86 9
    8 77 88 14
    512 74 76 3
    """
    rows: list[Row] = []
    for width, heads, blocks, sharing, alone, together in PUBLISHED:
        profile = transformer_profile(
            blocks, width, heads, VOCABULARY, SEQUENCE, BATCH, OPERATIONS_PER_SECOND, value_bytes=VALUE_BYTES,
            recompute=True,
        )  # fmt: skip
        computed = (profile.forward_seconds + profile.backward_seconds) / sharing
        activation = VALUE_BYTES * BATCH * SEQUENCE * width
        summed = SUMS * tensor_link_bytes(activation, blocks, sharing) / GPU_BYTES_PER_SECOND
        for groups, published in ((1, alone), (GROUPS, together)):
            gradients = 2 * (groups - 1) / groups * profile.gradient_bytes / NODE_BYTES_PER_SECOND
            model = 100 * computed / (computed + summed + gradients)
            rows.append(
                {
                    "gpus": groups * sharing,
                    "sharing": sharing,
                    "parameters": profile.gradient_bytes / VALUE_BYTES,
                    "published_pct": published,
                    "model_pct": model,
                    "error_pct": percent(model, published),
                    "compute_seconds": computed,
                    "activation_seconds": summed,
                    "gradient_seconds": gradients,
                    "missing": "; ".join(MISSING),
                    "source": SOURCE,
                }
            )
    return rows
