"""Checks whether a scenario that can be simulated can also be run for real. Each refusal gives a cure."""

from __future__ import annotations

from distsim.errors import InputError, NotAvailableYetError
from distsim.extras import need
from distsim.policies import POLICIES
from distsim.scenario import Scenario
from distsim.workload import TRAINING_SAMPLES


def check_available(scenario: Scenario) -> None:
    """Raises InputError where `scenario` can be simulated but not really run, or not yet."""
    policy, communication = scenario.policy, scenario.communication
    if scenario.failures is not None:
        _check_failures(scenario)
    policy.check_real(scenario.workload, scenario.cluster.workers)
    if scenario.workload.model is not None and not policy.real_model:
        _refuse("workload.model", scenario.workload.model, policy.kind, "remove it")
    if communication.sends == "eager" and not policy.real_eager:
        _refuse("communication.sends", "eager", policy.kind, "write rendezvous")
    if scenario.server_decides:
        _check_server(scenario)
        return
    if policy.all_reduces:
        _check_all_reduce(scenario)
    if scenario.workload.known_model is not None:
        _check_model(scenario)


def check_nodes(scenario: Scenario) -> None:
    """Raises InputError where the ranks of a real run of `scenario` share files, which needs a single machine."""
    for asked, value, keeps, why, cure in (
        (
            "policy.kind", scenario.policy.kind, not scenario.policy.real_machines,
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


def _refuse(asked: str, value: object, kind: str, cure: str) -> None:
    rule = f"cannot be run for real with policy.kind = {kind!r} yet"
    raise NotAvailableYetError.of(asked, value, rule, f"{cure}, or simulate it")


def _check_failures(scenario: Scenario) -> None:
    servers, colocated = len(scenario.servers), scenario.communication.colocated
    policy, model = scenario.policy, scenario.workload.model
    kinds = " or ".join(kind for kind, one in POLICIES.items() if one.real_failures)
    for asked, value, fine, cure in (
        ("policy.kind", policy.kind, policy.real_failures, kinds),
        ("workload.model", model, not (model and servers), "a ring"),
        ("communication.servers", servers, servers <= 1, "1"),
        ("communication.colocated", colocated, not (servers and colocated), "false"),
    ):
        if not fine:
            raise NotAvailableYetError.of(
                asked, value, "cannot come back from a checkpoint in a real run yet",
                f"take {cure}, remove [failures], or simulate it",
            )  # fmt: skip


def _check_server(scenario: Scenario) -> None:
    """For a run in which a server decides."""
    implementation, kind = scenario.communication.implementation, scenario.policy.kind
    if implementation != "backend":
        _refuse("communication.implementation", implementation, kind, "take backend")
    if scenario.cluster.nodes is not None:
        _refuse("cluster.nodes", scenario.cluster.nodes, kind, "remove it")


def _check_all_reduce(scenario: Scenario) -> None:
    communication = scenario.communication
    if communication.kind == "parameter_server":
        if scenario.receive == "fifo":
            _refuse("communication.receive", "fifo", scenario.policy.kind, "take concurrent")
    elif not scenario.collective.backend and communication.implementation == "backend":
        raise InputError.of(
            "communication.implementation", "backend", "means the backend's own all-reduce, which is a ring and not "
            f"kind = {communication.kind!r}", 'write implementation = "schedule", or kind = "ring"',
        )  # fmt: skip


def _check_model(scenario: Scenario) -> None:
    """Raises InputError where the workers would need more samples than there are, or a package is missing."""
    model, batch = scenario.workload.model, scenario.workload.batch
    workers = scenario.samples_per_step // batch
    samples = TRAINING_SAMPLES[str(model)]
    if workers * batch > samples:
        raise InputError.of(
            "workload.batch", batch, f"of {workers} workers is more than the {samples} samples that "
            f"model = {model!r} learns from", f"write {max(samples // workers, 1)} or less",
        )  # fmt: skip
    if model in ("mlp", "cnn"):
        need("sklearn", f"model = {model!r}")
