"""The exercises of chapter 09: what is right, and what is known to go wrong, both computed."""

from distsim import example, simulate
from distsim.course import Judged, design, exercise, number
from distsim.course.design import FAR_PCT, Changes
from distsim.metrics import worker_seconds
from distsim.scenario import Scenario
from distsim.theory.pipeline import bubble_share, micro_batches_held
from distsim.theory.sharding import sharded_state_bytes
from distsim.theory.tensor import tensor_link_bytes

GB = 1e9
PARAMETERS, GPUS, STAGE = 7e9, 16, 2
STAGES, MOST_BUBBLE = 8, 0.10
MICRO_BATCHES, THIRD = 64, 2  # the third stage, counted from 0
ACTIVATION, BLOCKS, SHARING, LINK = 42e6, 40, 8, 300e9  # bytes, blocks, GPUs, bytes per second
PIPELINE = example("synchronous_ring").replacing(
    {
        "workload": {"batch": 32, "activation": "1 MiB"},
        "policy": {"kind": "pipeline", "micro_batches": 8, "schedule": "1f1b"},
        "cluster.workers": 4,
        "compute": {"mean": "240 ms"},
        "steps": 10,
    }
)
CHANGEABLE = (
    "cluster.bandwidth", "cluster.latency", "compute.distribution", "compute.cv", "compute.slow", "compute.pauses",
    "workload.activation",
)  # fmt: skip


def state_gb_at(stage: int) -> float:
    """On each GPU."""
    return sharded_state_bytes(PARAMETERS, GPUS, stage) / GB


def fewest(stages: int) -> int:
    """The least number of micro-batches with a small enough bubble."""
    return next(m for m in range(1, 10_000) if bubble_share(stages, m) <= MOST_BUBBLE)


HELD = micro_batches_held("1f1b", THIRD, STAGES, MICRO_BATCHES)
TENSOR_MS = 1e3 * tensor_link_bytes(ACTIVATION, BLOCKS, SHARING) / LINK


@exercise(
    points=1,
    hint="Which of the 16 bytes for each parameter are divided at stage 2?",
    because=f"Stage 3 would hold {state_gb_at(3):.0f} GB, and send half as much again.",
)
def state_gb(answer: object) -> Judged:
    """The bytes that each GPU holds at stage 2."""
    return number(
        answer,
        right=state_gb_at(STAGE),
        relative=0.005,
        unit="GB",
        wrong={
            state_gb_at(3): "That is stage 3.",
            state_gb_at(1): "That is stage 1: which gradients does a GPU need at stage 2?",
            state_gb_at(0): "That is all of it on every GPU.",
        },
    )


@exercise(
    points=2,
    hint="Put the stages and the share into the formula of section 3, and solve it for m.",
    because="Each has at least one sample, so the batch is as large. Megatron-LM's interleaved schedule needs fewer.",
)
def fewest_micro_batches(answer: object) -> Judged:
    """From which number of micro-batches on the bubble is small enough."""
    return number(
        answer,
        right=fewest(STAGES),
        tolerance=0,
        wrong={
            round((STAGES - 1) / MOST_BUBBLE): "The bubble is a share of the whole step, not of the work.",
            fewest(STAGES + 1): "There is one place less to fill than there are stages.",
            fewest(STAGES) - 1: f"Then the bubble is {100 * bubble_share(STAGES, fewest(STAGES) - 1):.2f} %.",
        },
    )


@exercise(
    points=2,
    hint="How many micro-batches does the third stage hold in 1F1B? And in GPipe?",
    because="1F1B holds as many, however many micro-batches there are. So a small bubble needs no more memory.",
)
def gpipe_over_1f1b(answer: object) -> Judged:
    """How many times as many activations GPipe holds in the third stage."""
    return number(
        answer,
        right=MICRO_BATCHES / HELD,
        relative=0.005,
        wrong={
            MICRO_BATCHES / STAGES: "That is the first stage.",
            MICRO_BATCHES / (HELD - 1): "The first stage has the number 0.",
            MICRO_BATCHES / (HELD + 1): "That is the second stage.",
            HELD: "That is what 1F1B holds.",
            HELD / MICRO_BATCHES: "That is the inverse.",
            MICRO_BATCHES: "That is what GPipe holds.",
        },
    )


@exercise(
    points=2,
    hint="How many all-reduces does a block make, forward and backward? How many bytes does a ring carry for each?",
    because=f"Over links of 100 Gbit/s between machines it would be {TENSOR_MS * LINK / 12.5e9:.0f} ms.",
)
def tensor_ms(answer: object) -> Judged:
    """The time of the all-reduces of one step."""
    return number(
        answer,
        right=TENSOR_MS,
        unit="ms",
        wrong={
            TENSOR_MS / 2: "A block makes two all-reduces forward, and two backward.",
            TENSOR_MS / 4: "That is one all-reduce for each block.",
            TENSOR_MS / (2 * (SHARING - 1) / SHARING): "A ring carries nearly twice the vector on each link.",
            TENSOR_MS * SHARING / (SHARING - 1): "A ring of eight carries 2 x 7/8 of the vector.",
            8 * TENSOR_MS: "The links carry bytes, not bits.",
        },
    )


def bubble_error_pct(scenario: Scenario) -> float:
    """The formula's bubble against the idle share of the simulated run."""
    parts = worker_seconds(simulate(scenario))
    idle = float((1.0 - parts["compute"] / sum(parts.values())).mean())
    return 100.0 * (bubble_share(scenario.cluster.workers, scenario.policy.micro_batches) / idle - 1.0)


def nearer(error: float, _: Changes) -> str:
    """The feedback where the formula is still good."""
    if error > -3.0:
        return "The formula is still right: all stages are alike, and messages hardly take time."
    return "This is the right direction. Make the change stronger."


@exercise(
    points=3,
    hint="What does the formula suppose of the stages and of the messages between them?",
    because="The formula counts places in a grid. It has no slow stage and no link.",
)
def late_pipeline(answer: object) -> Judged:
    """A pipeline that is idle for longer than the formula says."""
    return design(
        answer,
        scenario=PIPELINE,
        changeable=CHANGEABLE,
        error_pct=bubble_error_pct,
        far=lambda error: error < -FAR_PCT,
        otherwise=nearer,
    )
