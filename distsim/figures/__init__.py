"""Figures: a trace or a table in, a plotly figure with its sentence and table out. They simulate and read nothing."""

from distsim.figures.batch_grid import batch_grid
from distsim.figures.captioned import Captioned
from distsim.figures.checkpoints import checkpoints
from distsim.figures.collective import collective
from distsim.figures.comparison import comparison
from distsim.figures.critical_path import critical_path
from distsim.figures.decision import Job, decision
from distsim.figures.exchange_times import exchange_times
from distsim.figures.heat_map import heat_map
from distsim.figures.loss import loss
from distsim.figures.overlap import overlap
from distsim.figures.pipeline import pipeline
from distsim.figures.prediction_errors import prediction_errors
from distsim.figures.scaling import SpeedUps, scaling
from distsim.figures.sequence import sequence
from distsim.figures.stages import guess_formula_simulation_measurement
from distsim.figures.staleness import staleness
from distsim.figures.step_times import step_times
from distsim.figures.steps import step_scatter
from distsim.figures.stragglers import stragglers
from distsim.figures.timeline import timeline
from distsim.figures.traffic import ring_against_server, traffic
from distsim.figures.utilization import utilization

__all__ = [
    "Captioned",
    "Job",
    "SpeedUps",
    "batch_grid",
    "checkpoints",
    "collective",
    "comparison",
    "critical_path",
    "decision",
    "exchange_times",
    "guess_formula_simulation_measurement",
    "heat_map",
    "loss",
    "overlap",
    "pipeline",
    "prediction_errors",
    "ring_against_server",
    "scaling",
    "sequence",
    "staleness",
    "step_scatter",
    "step_times",
    "stragglers",
    "timeline",
    "traffic",
    "utilization",
]
