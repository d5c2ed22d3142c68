"""Pipeline parallelism for real, by torch.distributed.pipelining: receive -> compute -> send, for each micro-batch.

receive     before a forward or backward of a micro-batch, torch's schedule posts the receive of its input.
compute     the forward or backward itself is next to nothing; then the worker sleeps the drawn time. Workers that share
            blocks sum made-up activations after each half of one.
send        the result is sent without waiting. gloo moves it when the neighbour has posted its receive.
exchange    after its last message, a worker sums made-up gradients with those that have the same layers.
flush       a step ends when the first stage has done its last backward, after all other stages. Where stages have
            several workers, all workers then meet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributed import P2POp
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from distsim.pipeline_stages import stages_of
from distsim.policies import Pipeline
from distsim.policies.pipeline import Direction
from distsim.runtime.ranks.filled_exchange import FilledExchange
from distsim.runtime.recording.clock import sleep_until
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.runtime.transport import backend
from distsim.runtime.transport.messages import num_floats
from distsim.scenario import Scenario

WARM_UP_STEPS = 3
DIRECTIONS: tuple[Direction, Direction] = ("forward", "backward")
FORWARD, BACKWARD = 0, 1  # their numbers in the records
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
    """torch's stage, whose forwards and backwards take their time by `pass_time`, and which records its messages.

    torch asks for the receives and sends of a forward or backward right before it posts them.
    """

    def __init__(self, stage: int, stages: int, slot: StatusSlot, group: backend.Group | None) -> None:
        self.model = Doubling()
        super().__init__(self.model, stage, stages, torch.device("cpu"), group=group)
        self._slot = slot
        self.begin_step(0, Recorder(), lambda *_: None)

    def begin_step(self, step: int, recorder: Recorder, pass_time: Callable[[int, int, float], None]) -> None:
        """Step `step` begins. pass_time: of a direction, a micro-batch and a start; returns when the piece is over."""
        self._step, self._recorder, self._pass_time = step, recorder, pass_time
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
        self._pass_time(FORWARD, fwd_chunk_id, start)
        return output

    def backward_one_chunk(self, bwd_chunk_id: int, *arguments: Any, **options: Any) -> None:
        """The backward of one micro-batch, whose gradient has arrived."""
        start = self._begin(BACKWARD, bwd_chunk_id)
        super().backward_one_chunk(bwd_chunk_id, *arguments, **options)
        self._pass_time(BACKWARD, bwd_chunk_id, start)

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

    def _pass(self, direction: int, micro: int) -> str:
        return f"{DIRECTIONS[direction]} of micro-batch {micro} of step {self._step}"


class PipelineWorker:
    """The role of one worker of a stage: `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def __init__(self, scenario: Scenario, worker: int, recorder: Recorder, slot: StatusSlot, done_before: int) -> None:
        policy, workers = scenario.policy, scenario.cluster.workers
        assert isinstance(policy, Pipeline)
        stages, width = stages_of(policy, scenario.workload, workers), policy.width
        self._number, self._stages, self._calls = worker // width, stages, len(stages.calls)
        self._own = stages.of[self._number]
        self._micro_batches = policy.micro_batches
        self._steps = scenario.steps
        self._times = scenario.compute_times().first(worker, scenario.steps).tolist()
        self._batch = torch.ones(self._micro_batches, num_floats(stages.message_bytes))
        columns = [range(place, workers, width) for place in range(width)]
        group = backend.group_of(columns) if width > 1 else None
        self._stage = TimedStage(self._number, len(stages.of), slot, group)
        unit = f"stage {self._number}"
        self._sum: FilledExchange | None = None  # where workers share blocks
        if stages.sums_of_a_piece:
            self._sum = FilledExchange(scenario, worker, slot, stages.sums, stages.message_bytes, unit)
        self._gradients = [
            FilledExchange(scenario, worker, slot, one, self._own.gradient_bytes, unit) for one in stages.gradients
        ]
        schedule = SCHEDULES[policy.schedule]
        self._schedule = schedule(self._stage, self._micro_batches, loss_fn=_sum, scale_grads=False)
        self._recorder = recorder
        self._slot = slot
        self._done_before = done_before
        recorder.facts["num_bytes"] = self._batch[:1].nbytes
        recorder.facts["floats"] = [num_floats(call.num_bytes) for call in stages.calls]

    def warm_up(self) -> None:
        """Opens the connections, and lets torch's stages agree on what they exchange."""
        for step in range(WARM_UP_STEPS):
            self._one_step(step, 0.0, Recorder())

    def run(self, start: float) -> None:  # noqa: ARG002 - a stage begins when its first input arrives
        """Runs all steps."""
        for step, seconds in enumerate(self._times[: self._steps]):
            self._one_step(step, seconds, self._recorder)
            self._slot.done(self._done_before + step + 1)

    def _one_step(self, step: int, seconds: float, recorder: Recorder) -> None:
        def pass_time(direction: int, micro: int, start: float) -> None:
            self._pass_time(step, direction, micro, start, seconds, recorder)

        for exchange in self._gradients:
            exchange.make(step)
        self._stage.model.weight.grad = None
        self._stage.begin_step(step, recorder, pass_time)
        inputs = (self._batch,) if self._stage.is_first else ()
        self._output = self._schedule.step(*inputs, target=self._batch if self._stage.is_last else None)
        for place, exchange in enumerate(self._gradients):
            exchange.run(step * self._calls + self._stages.gradient_number(self._number, place), recorder)
        if self._stages.width > 1:
            self._slot.doing(f"wait for the end of step {step}", waiting=True)
            backend.barrier()

    def _pass_time(
        self, step: int, direction: int, micro: int, start: float, seconds: float, recorder: Recorder
    ) -> None:
        """Sleeps the parts of a piece, which began at `start`, and makes the sums between them."""
        place = 0
        for part in self._own.parts(DIRECTIONS[direction]):
            summed = self._sum if part.summed else None
            if summed is not None:
                summed.make(step)
            sleep_until(start + part.share * seconds)
            end = time.monotonic()
            recorder.table("passes")((step, micro, direction, start, end))
            start = end
            if summed is not None:
                number = self._stages.sum_number(DIRECTIONS[direction], micro, place)
                summed.run(step * self._calls + number, recorder)
                place, start = place + 1, time.monotonic()

    def verify(self) -> None:
        """Raises an error where the last step left a wrong output, gradient or sum.

        Each stage doubles, so each number of the batch adds 2^(stages - 1) to the gradient of any stage's weight.
        """
        numbers, twice = self._batch.numel(), 2.0 ** (len(self._stages.of) - 1)
        assert self._stage.model.weight.grad is not None, "a step has been run"
        gradient = float(self._stage.model.weight.grad)
        # The gradient is a rounded sum over many numbers.
        if abs(gradient - numbers * twice) > 1e-5 * numbers * twice:
            raise WrongPipelineError(f"the gradient of stage {self._number} is {gradient}, not {numbers * twice}")
        if self._stage.is_last and not bool((self._output == 2.0 * twice).all()):
            raise WrongPipelineError(f"the last stage's output is not {2.0 * twice} throughout")
        for exchange in (self._sum, *self._gradients):
            if exchange is not None:
                exchange.check(self._steps - 1)


def _sum(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:  # noqa: ARG001 - torch hands over both
    return output.sum()
