"""The public surface, and that importing it costs next to nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
from importlib import import_module

import pytest

import distsim
from distsim.cli.main import PLACES

HEAVY = ("torch", "plotly", "ipywidgets", "jupyter", "jupyterlab", "IPython", "pandas", "scipy")
ALL_COMMANDS = """
import click
from distsim.cli.main import distsim
context = click.Context(distsim)
for name in distsim.list_commands(context):
    distsim.get_command(context, name)
"""
PUBLIC = [
    "Comparison", "DistsimError", "InputError", "RunError", "Scenario", "Summary", "Trace", "compare", "example",
    "measure", "predict_and_measure", "simulate", "summary",
]  # fmt: skip


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_public_names() -> None:
    assert sorted(PUBLIC) == distsim.__all__ == dir(distsim)
    for name in PUBLIC:
        assert getattr(distsim, name).__doc__, name


@pytest.mark.parametrize("package", ["distsim", "distsim.testbed", "distsim.grading"])
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    module = import_module(package)
    assert all(hasattr(module, name) for name in dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'simulat'"):
        module.simulat  # noqa: B018


def test_the_fork_server_imports_nothing_of_the_process_that_judges() -> None:
    code = "import sys, distsim.testbed.fork_server, distsim.testbed.rank_main; print('distsim.cluster' in sys.modules)"
    assert python(code) == "False"


@pytest.mark.parametrize(
    "statement",
    ["import distsim", "from distsim import simulate, measure, compare, example", ALL_COMMANDS],
)
def test_importing_needs_nothing_heavy(statement: str) -> None:
    code = f"import sys\n{statement}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    assert python(code) == "[]"


def test_a_command_imports_no_other() -> None:
    code = """
import sys
from distsim.cli.main import distsim
distsim.main(["simulate", "--help"], standalone_mode=False)
print([name for name in sys.modules if name in distsim_commands])
"""
    code = code.replace("distsim_commands", repr([place.partition(":")[0] for place in PLACES.values()]))
    assert python(code).splitlines()[-1] == "['distsim.cli.simulate']"


def test_figures_and_explorers_import_no_statistics() -> None:
    """scipy.stats takes longer than all the rest: a function that needs an interval imports it then."""
    modules = "distsim.explorers.failures, distsim.explorers.batch_size"
    code = f"import sys, {modules}; from distsim.figures import *; assert loss; print('scipy.stats' in sys.modules)"
    assert python(code) == "False"


def test_importing_takes_under_half_a_second() -> None:
    code = "import time; start = time.perf_counter(); import distsim; print(time.perf_counter() - start)"
    assert statistics.median(float(python(code)) for _ in range(5)) < 0.5
