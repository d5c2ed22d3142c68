"""The options about a device's memory, and what is said of a run that does not fit."""

from __future__ import annotations

from dataclasses import asdict

import click

from distsim.cli.output import warn
from distsim.errors import InputError
from distsim.memory import OPTIMIZERS, Held, held, not_counted
from distsim.profile import Profile
from distsim.scenario import Scenario
from distsim.units import cure, parse, show

optimizer_option = click.option(
    "--optimizer", type=click.Choice(list(OPTIMIZERS)), default="adam", show_default=True,
    help="Whose numbers are held beside parameters and gradients.",
)  # fmt: skip


def size(option: str, text: str) -> float:
    """Bytes above 0. Raises InputError."""
    try:
        found = parse(text, "byte")
    except ValueError as error:
        raise InputError.of(option, text, str(error), cure(error, 'write such as "80 GB"')) from None
    if found <= 0.0:
        raise InputError.of(option, text, "must be above 0", 'write such as "80 GB"')
    return found


def check_fits(scenario: Scenario, memory: str, optimizer: str) -> Held:
    """What a worker of `scenario` holds. Raises InputError, with the numbers, where that is more than `memory`."""
    room, kept = size("--memory", memory), held(scenario, optimizer)
    warn_of_activations(scenario.workload.profile)
    if kept.total > room:
        raise InputError.of(
            "--memory", memory, f"is less than the {in_words(kept)} that the worker with most holds, with {optimizer}",
            "take a larger device, a smaller batch, or a policy that divides what is held: distsim plan ranks them",
        )  # fmt: skip
    return kept


def warn_of_activations(profile: Profile | None) -> None:
    """Warns where nobody knows the activations, which a device must hold, too."""
    if lacking := not_counted(profile):
        warn([lacking])


def in_words(kept: Held) -> str:
    """Such as "240 MB (100 MB of parameters, 100 MB of gradients, 40 MB of optimizer)"."""
    parts = ", ".join(f"{show(value, 'byte')} of {kind}" for kind, value in asdict(kept).items() if value)
    return f"{show(kept.total, 'byte')} ({parts})"
