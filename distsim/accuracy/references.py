"""Digits that publications print for the expressions of `theory`.

Sources: Dutta et al. 2018 (order statistics, asynchronous against synchronous), computed apart from this package; Wang
and Joshi 2019 (local SGD), simulated; Narayanan et al. 2021 (bubbles); Rajbhandari et al. 2020 (memory of ZeRO, figure
1); Young 1974 and Daly 2006 (checkpoints), with Daly's own examples of figures 3 to 5; eduWRENCH, module A.3.1
(contention); Tippett 1925 (the largest of normal numbers).
"""

from __future__ import annotations

from decimal import Decimal

from distsim.accuracy.claim import Claim
from distsim.accuracy.contention import EXAMPLES, beside
from distsim.distributions import Exponential
from distsim.theory.checkpointing import daly_interval_seconds, young_interval_seconds
from distsim.theory.local_sgd import exponential_local_step_seconds, long_period_local_step_seconds
from distsim.theory.order_statistics import WorkerTime, exponential_seconds
from distsim.theory.pipeline import bubble_share
from distsim.theory.sharding import sharded_state_bytes
from distsim.theory.staleness import asynchronous_updates_speed_up

# (k, workers): E of the k-th smallest of so many exponential times of mean 1
EXPONENTIAL = {
    (4, 4): "2.08333", (8, 8): "2.71786", (4, 8): "0.63452", (7, 8): "1.71786", (16, 16): "3.38073",
    (32, 32): "4.05850", (100, 100): "5.18738", (96, 100): "3.10404", (98, 100): "3.68738", (99, 100): "4.18738",
}  # fmt: skip
ASYNCHRONOUS = {8: "21.743", 100: "518.738"}  # updates of N workers per synchronous update
LOCAL_SGD = {1: "3.381", 10: "1.632", 50: "1.265"}  # period: seconds per local step of 16 workers
SIMULATED = 2e-3  # relative error that the simulated digits may have
BUBBLES = {4: "0.42857", 8: "0.27273", 16: "0.15789"}  # micro-batches, on 4 stages
ZERO_GB = {0: "120", 1: "31.4", 2: "16.6", 3: "1.9"}  # by stage: of 7.5 billion parameters on each of 64 GPUs
INTERVALS = {(60, 14400): ("1314.5", "1274.8"), (120, 3600): ("929.5", "851.2"), (300, 10800): ("2545.6", "2349.5")}
DALYS_MINUTES = {24.0: "117", 6.0: "57", 0.25: "9.1"}  # M in hours, C = 5 min


def claims() -> list[Claim]:
    """Each expression to the last digit printed."""
    one = WorkerTime(Exponential(1.0))
    rows = [
        printed(f"order statistic, Exp(1), {k} of {workers}", exponential_seconds(1.0, k, workers), digits)
        for (k, workers), digits in EXPONENTIAL.items()
    ]
    rows += [
        printed(f"async updates per synchronous, N = {workers}",
                asynchronous_updates_speed_up([one] * workers), digits)
        for workers, digits in ASYNCHRONOUS.items()
    ]  # fmt: skip
    for period, digits in LOCAL_SGD.items():
        expression = exponential_local_step_seconds(1.0, 16, period)
        case = f"local SGD, N = 16, every {period} (simulated)"
        rows.append(Claim(case, expression, float(digits), SIMULATED * expression))
    rows.append(printed("1 + largest of 16 standard normal numbers",
                        long_period_local_step_seconds(1.0, 1.0, 16, 1), "2.765991"))  # fmt: skip
    rows += [
        printed(f"bubble, 4 stages, {micro_batches} micro-batches", bubble_share(4, micro_batches), digits)
        for micro_batches, digits in BUBBLES.items()
    ]
    rows += [
        printed(
            f"ZeRO, stage {stage}, 7.5e9 parameters, 64 GPUs: GB", sharded_state_bytes(7.5e9, 64, stage) / 1e9, digits
        )
        for stage, digits in ZERO_GB.items()
    ]
    for (checkpoint, between), (young, daly) in INTERVALS.items():
        case = f"C {checkpoint} s, M {between} s, seconds by"
        rows.append(printed(f"{case} Young", young_interval_seconds(checkpoint, between), young))
        rows.append(printed(f"{case} Daly", daly_interval_seconds(checkpoint, between), daly))
    rows += [
        printed(f"C 5 min, M {hours:g} h, minutes by Daly", daly_interval_seconds(300, hours * 3600) / 60, minutes)
        for hours, minutes in DALYS_MINUTES.items()
    ]
    rows += [
        printed(beside(flow, flows), flow.seconds, flow.printed, units=1.0) for flows in EXAMPLES for flow in flows
    ]
    return rows


def printed(case: str, expression: float, digits: str, units: float = 0.5) -> Claim:
    """Agreement to half a unit of the last digit; a source that cuts digits off needs one unit.

    >>> printed("five thirds", 5 / 3, "1.667").holds, printed("five thirds", 5 / 3, "1.666").holds
    (True, False)
    >>> printed("five thirds", 5 / 3, "1.666", units=1.0).holds
    True
    """
    unit = 10.0 ** int(Decimal(digits).as_tuple().exponent)
    return Claim(case, expression, float(digits), units * unit)
