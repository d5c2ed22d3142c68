"""Pipeline parallelism for real, by torch.distributed.pipelining: receive -> compute -> send, for each micro-batch.

receive     before a forward or backward of a micro-batch, torch's schedule posts the receive of its input.
compute     the forward or backward itself is next to nothing; then the stage sleeps the drawn time.
send        the result is sent without waiting. gloo moves it when the neighbour has posted its receive.
flush       a step ends when the first stage has done its last backward, after all other stages.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn
from torch.distributed import P2POp
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from distsim.policies import Pipeline
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport.messages import num_floats
from distsim.scenario import Scenario

WARM_UP_STEPS = 3
FORWARD, BACKWARD = 0, 1
SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class WrongPipelineError(RuntimeError):
    """The output or the gradient of a stage is wrong."""


class Doubling(nn.Module):
    """A stage's part of the model: activations times one weight, which is 2, so that results are exact."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(2.0))

    def forward(self, activations: torch.Tensor) -> torch.Tensor:
        """The same shape."""
        return activations * self.weight


class TimedStage(PipelineStage):
    """torch's stage, whose forwards and backwards take the drawn time, and which records them and its messages.

    torch asks for the receives and sends of a forward or backward right before it posts them.
    """

    def __init__(self, stage: int, stages: int, slot: StatusSlot) -> None:
        self.model = Doubling()
        super().__init__(self.model, stage, stages, torch.device("cpu"))
        self._slot = slot
        self.begin_step(0, (0.0, 0.0), Recorder())

    def begin_step(self, step: int, seconds: tuple[float, float], recorder: Recorder) -> None:
        """Step `step` begins. seconds: of the forward and the backward of a micro-batch."""
        self._step, self._seconds, self._recorder = step, seconds, recorder
        self._turned: dict[tuple[int, int], tuple[float, list[P2POp]]] = {}

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[P2POp]:
        """The receive of an activation."""
        return self._turn(FORWARD, fwd_chunk_id, super().get_fwd_recv_ops(fwd_chunk_id))

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[P2POp]:
        """The receive of an activation's gradient."""
        return self._turn(BACKWARD, bwd_chunk_id, super().get_bwd_recv_ops(bwd_chunk_id))

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[P2POp]:
        """The send of an activation."""
        return self._hand_over(FORWARD, fwd_chunk_id, super().get_fwd_send_ops(fwd_chunk_id))

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[P2POp]:
        """The send of an activation's gradient."""
        return self._hand_over(BACKWARD, bwd_chunk_id, super().get_bwd_send_ops(bwd_chunk_id))

    def forward_one_chunk(self, fwd_chunk_id: int, *arguments: Any, **options: Any) -> Any:
        """The forward of one micro-batch, whose input has arrived."""
        start = self._begin(FORWARD, fwd_chunk_id)
        output = super().forward_one_chunk(fwd_chunk_id, *arguments, **options)
        self._end(FORWARD, fwd_chunk_id, start)
        return output

    def backward_one_chunk(self, bwd_chunk_id: int, *arguments: Any, **options: Any) -> None:
        """The backward of one micro-batch, whose gradient has arrived."""
        start = self._begin(BACKWARD, bwd_chunk_id)
        super().backward_one_chunk(bwd_chunk_id, *arguments, **options)
        self._end(BACKWARD, bwd_chunk_id, start)

    def _turn(self, direction: int, micro: int, receives: list[P2POp]) -> list[P2POp]:
        if receives:
            self._slot.doing(f"recv for {self._pass(direction, micro)}", waiting=True)
            self._turned[direction, micro] = time.monotonic(), receives
        return receives

    def _hand_over(self, direction: int, micro: int, sends: list[P2POp]) -> list[P2POp]:
        if sends:
            self._recorder.table("handed")((self._step, micro, direction, time.monotonic()))
            for send in sends:
                self._recorder.tally.sent(send.peer, send.tensor.nbytes)
        return sends

    def _begin(self, direction: int, micro: int) -> float:
        start = time.monotonic()
        if (direction, micro) in self._turned:
            turned, receives = self._turned.pop((direction, micro))
            self._recorder.table("taken")((self._step, micro, direction, turned, start))
            for receive in receives:
                self._recorder.tally.received(receive.peer, receive.tensor.nbytes)
        self._slot.doing(self._pass(direction, micro))
        return start

    def _end(self, direction: int, micro: int, start: float) -> None:
        sleep_until(start + self._seconds[direction])
        self._recorder.table("passes")((self._step, micro, direction, start, time.monotonic()))

    def _pass(self, direction: int, micro: int) -> str:
        return f"{('forward', 'backward')[direction]} of micro-batch {micro} of step {self._step}"


class PipelineWorker:
    """The role of one stage: `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(self, scenario: Scenario, worker: int, recorder: Recorder, slot: StatusSlot, done_before: int) -> None:
        assert isinstance(scenario.policy, Pipeline)
        self._worker, self._stages = worker, scenario.cluster.workers
        self._micro_batches = scenario.policy.micro_batches
        self._steps = scenario.steps
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._share = scenario.workload.backward_share
        floats = num_floats((scenario.workload.handed_on_bytes or 0.0) / self._micro_batches)
        self._batch = torch.ones(self._micro_batches, floats)
        self._stage = TimedStage(worker, self._stages, slot)
        schedule = SCHEDULES[scenario.policy.schedule]
        self._schedule = schedule(self._stage, self._micro_batches, loss_fn=_sum, scale_grads=False)
        self._recorder = recorder
        self._slot = slot
        self._done_before = done_before
        recorder.facts["num_bytes"] = self._batch[:1].nbytes

    def warm_up(self) -> None:
        """Opens the connections, and lets torch's stages agree on what they exchange."""
        for _ in range(WARM_UP_STEPS):
            self._stage.begin_step(0, (0.0, 0.0), Recorder())
            self._one_step()

    def run(self, start: float) -> None:  # noqa: ARG002 - a stage begins when its first input arrives
        """Runs all steps."""
        for step, seconds in enumerate(self._times[: self._steps]):
            forward, backward = (1.0 - self._share) * seconds, self._share * seconds
            per_pass = (forward / self._micro_batches, backward / self._micro_batches)
            self._stage.begin_step(step, per_pass, self._recorder)
            self._one_step()
            self._slot.done(self._done_before + step + 1)

    def _one_step(self) -> None:
        self._stage.model.weight.grad = None
        inputs = (self._batch,) if self._stage.is_first else ()
        self._output = self._schedule.step(*inputs, target=self._batch if self._stage.is_last else None)

    def verify(self) -> None:
        """Raises WrongPipelineError where the last step's output or gradient is wrong.

        Each stage doubles, so each number of the batch adds 2^(stages - 1) to the gradient of any stage's weight.
        """
        numbers, twice = self._batch.numel(), 2.0 ** (self._stages - 1)
        assert self._stage.model.weight.grad is not None, "a step has been run"
        gradient = float(self._stage.model.weight.grad)
        # The gradient is a rounded sum over many numbers.
        if abs(gradient - numbers * twice) > 1e-5 * numbers * twice:
            raise WrongPipelineError(f"the gradient of stage {self._worker} is {gradient}, not {numbers * twice}")
        if self._stage.is_last and not bool((self._output == 2.0 * twice).all()):
            raise WrongPipelineError(f"the last stage's output is not {2.0 * twice} throughout")


def _sum(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:  # noqa: ARG001 - torch hands over both
    return output.sum()
