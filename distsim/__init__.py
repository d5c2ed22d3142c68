"""distsim: predict a distributed training run, run it for real, and explain the gap.

    scenario.toml -> simulate -> Trace (predicted) -+
                  -> measure  -> Trace (measured)  -+-> compare -> report, figures, grade

>>> import distsim
>>> trace = distsim.simulate(distsim.example("synchronous_ring"))
>>> distsim.summary(trace).updates
50
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distsim.comparison import Comparison as Comparison
    from distsim.comparison import compare as compare
    from distsim.errors import DistsimError as DistsimError
    from distsim.errors import InputError as InputError
    from distsim.errors import RunError as RunError
    from distsim.examples import example as example
    from distsim.experiment import predict_and_measure as predict_and_measure
    from distsim.metrics import Summary as Summary
    from distsim.metrics import summary as summary
    from distsim.runtime.measure import measure as measure
    from distsim.scenario import Scenario as Scenario
    from distsim.simulation import simulate as simulate
    from distsim.trace import Trace as Trace

HOMES = {
    "Comparison": "distsim.comparison",
    "DistsimError": "distsim.errors",
    "InputError": "distsim.errors",
    "RunError": "distsim.errors",
    "Scenario": "distsim.scenario",
    "Summary": "distsim.metrics",
    "Trace": "distsim.trace",
    "compare": "distsim.comparison",
    "example": "distsim.examples",
    "measure": "distsim.runtime.measure",
    "predict_and_measure": "distsim.experiment",
    "simulate": "distsim.simulation",
    "summary": "distsim.metrics",
}
__all__ = sorted(HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Loads a public name at its first use, so that `import distsim` is quick and needs no torch."""
    if name not in HOMES:
        raise AttributeError(f"module 'distsim' has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
