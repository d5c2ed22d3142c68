"""The roles of ranks in a run without a server that decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from distsim.policies import Ddp, Mesh, Pipeline, Programmed, Tensor
from distsim.runtime.devices.device import Device
from distsim.runtime.ranks.failures import FailureRecovery
from distsim.runtime.recording.rank_status import StatusSlot
from distsim.runtime.recording.recorder import Recorder
from distsim.scenario import Scenario

if TYPE_CHECKING:
    from distsim.runtime.ranks.program import StepWork


class PeerRole(Protocol):
    """The role of one rank: `warm_up`, then `run` from an agreed moment on, then `verify`."""

    def warm_up(self) -> None:
        """Opens the connections and touches the memory. Nothing is recorded."""
        ...

    def run(self, start: float) -> None:
        """Runs all steps, the first from `start` on (monotonic seconds)."""
        ...

    def verify(self) -> None:
        """Raises an error where the resulting numbers are wrong."""
        ...


def peer_role_of(
    scenario: Scenario, rank: int, recorder: Recorder, slot: StatusSlot, done_before: int, device: Device,
    recovery: FailureRecovery | None = None,
) -> PeerRole:  # fmt: skip
    """The role of `rank`.

    done_before: steps of the scenarios before this one, for progress. recovery: only in a run with failures.
    """
    if isinstance(scenario.policy, Ddp):
        from distsim.runtime.ranks.ddp import DdpWorker

        return DdpWorker(scenario, rank, recorder, slot, done_before, device)
    if isinstance(scenario.policy, Pipeline):
        from distsim.runtime.ranks.pipeline import PipelineWorker

        return PipelineWorker(scenario, rank, recorder, slot, done_before)
    if isinstance(scenario.policy, Programmed):
        from distsim.runtime.ranks.program import ProgramWorker

        return ProgramWorker(scenario, rank, _work_of(scenario, rank), recorder, slot, done_before)
    from distsim.runtime.ranks.peers import Peer, ScheduleServer

    if rank < scenario.cluster.workers:
        return Peer(scenario, rank, recorder, slot, done_before, device, recovery)
    return ScheduleServer(scenario, rank, recorder, slot, recovery)


def _work_of(scenario: Scenario, worker: int) -> StepWork:
    """What a worker computes in each step of its program."""
    if scenario.workload.model is None:
        from distsim.runtime.ranks.filled_program import FilledProgram

        return FilledProgram(scenario, worker)
    if isinstance(scenario.policy, Tensor | Mesh):
        from distsim.runtime.ranks.tensor_training import TensorTraining

        return TensorTraining(scenario, worker)
    from distsim.runtime.ranks.sharded_training import ShardedTraining

    return ShardedTraining(scenario, worker)
