"""The exercises of chapter 01: what is right, and what is known to go wrong, both computed."""

from distsim.course import Judged, choice, exercise, number
from distsim.figures import Job, decision
from distsim.figures.decision import BOTH, BOUND, DATA, DAY, MODEL, ONE
from distsim.theory import memory, scaling
from distsim.theory.collectives import ring_all_reduce_seconds

ANSWERS = [ONE, DATA, MODEL, BOTH, BOUND]
BLOOM = 176e9
STEP_SECONDS, GRADIENT, LATENCY_SECONDS = 0.4, 100e6, 50e-6
GPT_2 = memory.transformer_parameters(layers=48, width=1600, vocabulary=50257, context=1024)


def fastest(bytes_per_second: float, num_bytes: float = GRADIENT) -> int:
    """The number of workers with the largest speed-up, one batch divided among all, around a ring."""

    def speed_up(workers: int) -> float:
        ring = ring_all_reduce_seconds(num_bytes, workers, bytes_per_second, LATENCY_SECONDS)
        return scaling.strong_speed_up(STEP_SECONDS, ring, workers)

    return max(range(1, 200), key=speed_up)


def told(job: Job, device_bytes: float, operations_per_second: float) -> str:
    """The picture's answer for one job and a week."""
    row = decision([job], device_bytes, operations_per_second, patience_seconds=7 * DAY).table[0]
    return str(row["answer"])


@exercise(
    points=1,
    hint="For each parameter: itself, its gradient, and what Adam keeps; 4 bytes for each number.",
    because=f"On devices of 80 GB that is {memory.devices_to_hold(memory.state_bytes(BLOOM), 80e9)} of them, before any activation.",
)
def bloom_gb(answer: object) -> Judged:
    """The state of BLOOM while it trains with Adam."""
    return number(
        answer,
        right=memory.state_bytes(BLOOM) / 1e9,
        relative=0.005,
        unit="GB",
        wrong={
            4 * BLOOM / 1e9: "Those are the parameters alone: enough to store the model, not to train it.",
            memory.state_bytes(BLOOM, "sgd") / 1e9: "Parameters and gradients; Adam keeps numbers of its own, too.",
            memory.state_bytes(BLOOM, "momentum")
            / 1e9: "Momentum keeps one number for each parameter; how many does Adam?",
            memory.state_bytes(BLOOM) / 2**30: "That is in GiB; a GB is a thousand million bytes.",
        },
    )


@exercise(
    points=2,
    hint="Two comparisons: the state with the memory of one device, and the time on one device with a week.",
    because="A second device with the whole model on it again would not help: the model must be split.",
)
def fine_tuning(answer: object) -> Judged:
    """GPT-2 on ten million tokens, on a device of 16 GB."""
    job = Job("fine-tuning", memory.state_bytes(GPT_2), memory.training_operations(GPT_2, tokens=10e6))
    return choice(
        answer,
        right=told(job, device_bytes=16e9, operations_per_second=50e12),
        options=ANSWERS,
        wrong={
            ONE: "Compute the state of the model first, and compare it with 16 GB.",
            DATA: "With data parallelism every device holds the whole model.",
            BOTH: "The model is too large for one device; how long would the work take, on one?",
            BOUND: "Nothing keeps these data where they are.",
        },
    )


@exercise(
    points=2,
    hint="Take the loop of section 6 with another bandwidth, and mind that 8 bits are a byte.",
    because=f"With a tenth of the gradient it would be {fastest(25e9 / 8, GRADIENT / 10)} workers: the less travels, the more pays.",
)
def best_workers(answer: object) -> Judged:
    """The last number of workers that makes it faster, with faster links."""
    return number(
        answer,
        right=fastest(25e9 / 8),
        tolerance=1,
        wrong={
            fastest(10e9 / 8): "That is the number for links of 10 Gbit/s.",
            fastest(1e30): "Those links are too fast: the gradient has bytes, and a byte has 8 bits.",
            128: "Try the numbers in between: doubling is too coarse.",
        },
    )


@exercise(
    points=1,
    hint="Go through the three questions of the picture: memory, time, and where the data are.",
    because="Memory and time would do with one device: the place of the data decides.",
)
def hospitals(answer: object) -> Judged:
    """Scans that may not leave their hospitals."""
    job = Job("scans", memory.state_bytes(25e6), 1e18, bound=True)
    return choice(
        answer,
        right=told(job, device_bytes=16e9, operations_per_second=50e12),
        options=ANSWERS,
        wrong={
            ONE: "Memory and time would do. How do the scans get to that device?",
            DATA: "Its workers draw from data that may be dealt out freely. May these?",
            MODEL: "Does the model not fit?",
            BOTH: "Does the model not fit, and is it slow?",
        },
    )
