"""When workers fail and what it costs: the `[failures]` table."""

from __future__ import annotations

from pydantic import Field

from distsim.units import PositiveSeconds, Seconds
from distsim.validated_table import ValidatedTable


class Failures(ValidatedTable):
    """Each worker fails after an exponential time; the run goes back to its last checkpoint.

    mean_time_between_seconds: of one worker. checkpoint_every_seconds: of useful work between two checkpoints.
    checkpoint_cost_seconds, restart_cost_seconds: how long writing one takes, and coming back from one.

    >>> Failures(mean_time_between="4 h", checkpoint_every="20 min", checkpoint_cost="1 min", restart_cost="2 min")
    Failures(mean_time_between_seconds=14400.0, checkpoint_every_seconds=1200.0, checkpoint_cost_seconds=60.0, \
restart_cost_seconds=120.0)
    """

    mean_time_between_seconds: PositiveSeconds = Field(alias="mean_time_between", examples=["4 h"])
    checkpoint_every_seconds: PositiveSeconds = Field(alias="checkpoint_every", examples=["20 min"])
    checkpoint_cost_seconds: Seconds = Field(default=0.0, alias="checkpoint_cost")
    restart_cost_seconds: Seconds = Field(default=0.0, alias="restart_cost")


class Cost(ValidatedTable):
    """The `[cost]` table: the price of one host for an hour, in any currency."""

    price_per_hour: float = Field(ge=0.0, le=1e12, examples=[2.5])
