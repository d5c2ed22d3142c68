"""What a run without a deciding server cannot do for real, and what to write instead."""

from __future__ import annotations

from importlib.util import find_spec

from distsim.errors import InputError, NotAvailableYetError
from distsim.policies import Ddp, FlexRR, Pipeline
from distsim.scenario import Scenario
from distsim.workload import TRAINING_SAMPLES

COMPRESSIONS = (1.0, 0.5)  # whole numbers of 4 bytes, and torch's 2


def check_peers(scenario: Scenario) -> None:
    """Raises InputError where `scenario`, whose workers follow a plan, can be simulated but not really run."""
    if isinstance(scenario.policy, Pipeline):
        _check_pipeline(scenario, scenario.policy)
    else:
        _check_all_reduce(scenario)
    if isinstance(scenario.policy, Ddp) and scenario.policy.compression not in COMPRESSIONS:
        raise InputError.of(
            "policy.compression", scenario.policy.compression, "is no size of torch's numbers",
            "write 1.0 (float32) or 0.5 (float16), or simulate it",
        )  # fmt: skip
    if scenario.workload.model is not None:
        check_model(scenario)


FAIL_WITH = ("synchronous", "local_sgd")


def check_failures(scenario: Scenario) -> None:
    """Raises InputError where a run with `[failures]` can be simulated but not really run."""
    if scenario.failures is None:
        return
    servers, colocated = len(scenario.servers), scenario.communication.colocated
    model = scenario.workload.model
    for asked, value, fine, cure in (
        ("policy.kind", scenario.policy.kind, scenario.policy.kind in FAIL_WITH, f"take {' or '.join(FAIL_WITH)}"),
        ("workload.model", model, not (model and servers), "take a ring"),
        ("communication.servers", servers, servers <= 1, "take 1"),
        ("communication.colocated", colocated, not (servers and colocated), "take false"),
    ):
        if not fine:
            raise NotAvailableYetError.of(
                asked, value, "cannot come back from a checkpoint in a real run yet",
                f"{cure}, remove [failures], or simulate it",
            )  # fmt: skip


def check_nodes(scenario: Scenario) -> None:
    """Raises InputError where a real run of `scenario` shares files among its ranks, and so keeps to one machine."""
    for asked, value, keeps, why, cure in (
        (
            "policy.kind", "flexrr", isinstance(scenario.policy, FlexRR),
            "hands out its items through files that all ranks share", "take another kind",
        ),
        (
            "failures", "[failures]", scenario.failures is not None,
            "keeps its checkpoints in files that all ranks share", "remove [failures]",
        ),
    ):  # fmt: skip
        if keeps:
            raise NotAvailableYetError.of(
                asked, value, f"{why}, so a real run cannot be spread over several machines yet",
                f"{cure}, or leave --nnodes out",
            )  # fmt: skip


def _check_pipeline(scenario: Scenario, policy: Pipeline) -> None:
    workers = scenario.cluster.workers
    if scenario.workload.model is not None:
        raise NotAvailableYetError.of(
            "workload.model", scenario.workload.model, "cannot be cut into the stages of a real pipeline yet",
            "remove it, or simulate it",
        )  # fmt: skip
    if scenario.communication.sends == "eager":
        raise InputError.of(
            "communication.sends", "eager", "is not how torch's pipelines send: a stage posts a receive when it turns "
            "to the piece that needs it", "write rendezvous, or simulate it",
        )  # fmt: skip
    if policy.schedule == "1f1b" and policy.micro_batches < workers:
        raise InputError.of(
            "policy.micro_batches", policy.micro_batches, f"must be at least the {workers} stages for torch's 1f1b",
            f'write {workers} or more, or schedule = "gpipe"',
        )  # fmt: skip


def _check_all_reduce(scenario: Scenario) -> None:
    communication = scenario.communication
    if communication.kind == "parameter_server":
        if scenario.receive == "fifo":
            raise NotAvailableYetError.of(
                "communication.receive", "fifo", f"cannot be run for real with policy.kind = {scenario.policy.kind!r}",
                "take 'concurrent'",
            )  # fmt: skip
    elif communication.kind != "ring" and communication.implementation == "backend":
        raise InputError.of(
            "communication.implementation", "backend", "means the backend's own all-reduce, which is a ring and not "
            f"kind = {communication.kind!r}", 'write implementation = "schedule", or kind = "ring"',
        )  # fmt: skip


def check_model(scenario: Scenario) -> None:
    """Raises InputError where the workers would need more samples than there are, or a package is missing."""
    model, workers, batch = scenario.workload.model, scenario.cluster.workers, scenario.workload.batch
    samples = TRAINING_SAMPLES[str(model)]
    if workers * batch > samples:
        raise InputError.of(
            "workload.batch", batch, f"of {workers} workers is more than the {samples} samples that "
            f"model = {model!r} learns from", f"write {max(samples // workers, 1)} or less",
        )  # fmt: skip
    if model in ("mlp", "cnn") and find_spec("sklearn") is None:
        raise InputError(
            f"model = {model!r} learns the digits of scikit-learn, which is not installed. "
            "Cure: pip install 'distsim-course[labs]'"
        )
