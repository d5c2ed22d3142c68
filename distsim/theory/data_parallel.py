"""DataParallel: one process drives several devices; the first one has the model, all outputs and the sum of gradients.

In every step device 0 sends the others their inputs and a copy of the model, collects their outputs, sends back the
outputs' gradients, and adds up the gradients of the model; one Python interpreter launches all forwards.
Source of the parts: torch/nn/parallel/data_parallel.py and comm.py, and torch/csrc/cuda/comm.cpp of PyTorch 2, and Li
et al. 2020 (arXiv 2006.15704), section 2. The seconds of each part are derived here. Without NCCL, copies share device
0's link. With NCCL the model goes out by a broadcast, and its gradients come back by a reduce. Both pass from device to
device, piece by piece, so that each link carries them once.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from distsim.theory.arguments import at_least
from distsim.theory.collectives import gather_seconds, scatter_seconds


@dataclass(frozen=True)
class DataParallelStep:
    """The parts of one step in seconds, in the order in which they run."""

    scatter_seconds: float
    replicate_seconds: float
    forward_seconds: float
    gather_seconds: float
    scatter_gradients_seconds: float
    backward_seconds: float
    reduce_seconds: float

    @property
    def seconds(self) -> float:
        """Seconds of the whole step."""
        return float(sum(astuple(self)))


def data_parallel_step(
    devices: int,
    forward_seconds: float,
    backward_seconds: float,
    parameter_bytes: float,
    input_bytes: float,
    output_bytes: float,
    bytes_per_second: float,
    latency_seconds: float,
    interpreter_seconds: float = 0.0,
    *,
    nccl: bool = False,
) -> DataParallelStep:
    """The step of one process with N devices, n bytes of parameters, I of inputs and O of outputs:

        scatter     a + (N - 1) / N I / B       a part of the batch to each device
        replicate   a + (N - 1) n / B           the model to all devices, in every step
        forward     max(N g, f)                 launched one device after the other; the devices run in parallel
        gather      a + (N - 1) / N O / B       outputs to device 0, which computes the loss
        gradients   a + (N - 1) / N O / B       gradients of the outputs to the devices
        backward    b                           one native thread per device, no interpreter
        reduce      a + (N - 1) n / B           gradients of the model to device 0, which alone applies them

    With N = 1 there are no messages. Without NCCL and latency, replicate and reduce together take N times as long as a
    ring all-reduce. With NCCL each of the two takes at least (N - 1) a + n / B, since the first piece passes N - 1
    links. torch sends 10 MiB at a time, and the latency of each further time is left out here.

    devices: N. forward_seconds, backward_seconds: f, b, of one device's part of the batch. parameter_bytes: n.
    input_bytes, output_bytes: I, O, of the whole batch. bytes_per_second: B, of each device's link in each direction.
    latency_seconds: a. interpreter_seconds: g, for Python to launch one device's forward. nccl: whether torch copies
    and adds by NCCL, as it does between the GPUs of one machine where it is built with it.

    >>> step = data_parallel_step(4, 0.03, 0.06, 1e8, input_bytes=4e7, output_bytes=4e6, bytes_per_second=1e10,
    ...     latency_seconds=0.0, interpreter_seconds=0.01)
    >>> round(step.forward_seconds, 6), round(step.replicate_seconds, 6), round(step.seconds, 6)
    (0.04, 0.03, 0.1636)
    """
    at_least(1, devices=devices)
    at_least(0, forward_seconds=forward_seconds, backward_seconds=backward_seconds)
    at_least(0, parameter_bytes=parameter_bytes, input_bytes=input_bytes, output_bytes=output_bytes)
    at_least(0, interpreter_seconds=interpreter_seconds)
    link = (bytes_per_second, latency_seconds)
    outputs = gather_seconds(output_bytes, devices, *link)
    whole_model = scatter_seconds(devices * parameter_bytes, devices, *link)  # a piece is a whole model
    if nccl and devices > 1:
        whole_model = (devices - 1) * latency_seconds + parameter_bytes / bytes_per_second
    return DataParallelStep(
        scatter_seconds=scatter_seconds(input_bytes, devices, *link),
        replicate_seconds=whole_model,
        forward_seconds=max(devices * interpreter_seconds, forward_seconds),
        gather_seconds=outputs,
        scatter_gradients_seconds=outputs,
        backward_seconds=backward_seconds,
        reduce_seconds=whole_model,
    )
