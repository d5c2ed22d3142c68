"""Calibration: from times measured on a machine to the links of a scenario.

exchange       one exchange at one number of workers, measured with the scenario itself
operations     the operations that `distsim calibrate` measures, and their cost formulas
probe_times    the times in the traces of a calibration
plan           the scenarios of a calibration, and what each of them shows
fitted_line    latency and bandwidth, with intervals, from measured times
imposed        the emulated links of a calibration
samples        from measured times to the lines of a machine
machine        all lines of a machine, at any size and number of workers
model_step     what a step of a model takes on a machine
links          the links of a scenario on a machine, and the cores that its ranks share
file           the calibration file, which `simulate` reads
measured_range whether a scenario lies far beyond what was measured, and what the calibration lacks
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
from distsim.calibration.links import exchange_of
from distsim.calibration.machine import MachineCalibration
from distsim.calibration.measured_range import cautions, far_beyond
from distsim.calibration.plan import CalibrationPlan
from distsim.calibration.samples import fitted

__all__ = [
    "WARM_UP_STEPS",
    "Calibration",
    "CalibrationPlan",
    "Exchange",
    "Imposed",
    "MachineCalibration",
    "calibrated",
    "cautions",
    "exchange_of",
    "exchange_seconds",
    "exchanged_bytes",
    "far_beyond",
    "fit",
    "fitted",
    "probes",
]  # fmt: skip
