"""What a machine really does, and what that predicts: measured times in, links for scenarios out.

exchange    one exchange at one number of workers, measured with the scenario itself
families    what `distsim calibrate` measures, and what each of it costs
plan        the scenarios that show it, and what their traces say
line        latency and bandwidth, with intervals, out of times
imposed     the emulated links that a machine was calibrated on
machine     all lines of a machine: the links of scenarios of other sizes, numbers of workers and policies
file        the calibration file, which `simulate` takes
reach       what a scenario asks far beyond all that was measured
"""

from distsim.calibration.exchange import (
    WARM_UP_STEPS,
    Exchange,
    calibrated,
    exchange_seconds,
    exchanged_bytes,
    fit,
    probes,
)
from distsim.calibration.file import Calibration
from distsim.calibration.imposed import Imposed
from distsim.calibration.machine import MachineCalibration, fitted
from distsim.calibration.plan import CalibrationPlan
from distsim.calibration.reach import far_beyond

__all__ = [
    "WARM_UP_STEPS",
    "Calibration",
    "CalibrationPlan",
    "Exchange",
    "Imposed",
    "MachineCalibration",
    "calibrated",
    "exchange_seconds",
    "exchanged_bytes",
    "far_beyond",
    "fit",
    "fitted",
    "probes",
]  # fmt: skip
