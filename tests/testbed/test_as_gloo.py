"""Each function of torch.distributed gives on the testbed what it gives on gloo, and waits for whom it waits there."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist

from distsim.testbed import Run, Testbed

pytestmark = [pytest.mark.real, pytest.mark.more]
LAB = Path(__file__).parent / "as_gloo"
RANKS = 3
PROGRAMS = [
    line[8:].split("(")[0] for line in (LAB / "ranks.py").read_text().splitlines() if line.startswith("def try_")
]

NO_EXCHANGE = {  # functions that tell or set something in their own process, or that the run itself calls
    "breakpoint", "destroy_process_group", "get_backend", "get_backend_config", "get_debug_level",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_world_size", "init_process_group", "is_available", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "is_ucc_available", "is_xccl_available", "record_comm", "register_rendezvous_handler", "rendezvous",
    "set_debug_level", "set_debug_level_from_env", "supports_complex",
}  # fmt: skip
REFUSED = {"shrink_group", "split_group"}  # in words of their own on both, since they need NCCL
# Programs that no function is named by.
BESIDES = {"data_parallel", "empty_messages", "future", "future_that_goes_on", "order_in_memory", "work"}
WAITS_FOR_ALL = {"broadcast", "gather", "reduce", "scatter"}  # on gloo, for some of the group


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    with Testbed(LAB) as bed:
        yield bed


def on_both(testbed: Testbed, function: str, **arguments: Any) -> tuple[Run, Run]:
    runs = [
        testbed.run(function, [arguments] * RANKS, backend=backend, student=False, deadline_seconds=200.0)
        for backend in ("testbed", "gloo")
    ]
    assert [run.failure for run in runs] == [None, None], [run.output for run in runs]
    return runs[0], runs[1]


def test_every_public_function_is_tried_or_needs_no_exchange() -> None:
    """A function that a new torch brings makes this fail until someone has decided."""
    functions = (types.FunctionType, types.BuiltinFunctionType)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that torch keeps for old programs
        public = {name for name in dir(dist) if name[0] != "_" and isinstance(getattr(dist, name), functions)}
    assert public - NO_EXCHANGE <= set(PROGRAMS)


def test_every_function_gives_what_it_gives_on_gloo(testbed: Testbed) -> None:
    names = [name for name in PROGRAMS if name in BESIDES or (hasattr(dist, name) and name not in REFUSED)]
    ours, theirs = on_both(testbed, "every_program", names=names)
    for mine, gloo in zip(ours.results, theirs.results, strict=True):
        for name in mine:
            np.testing.assert_equal(mine[name], gloo[name], err_msg=name)
            assert not str(mine[name]).partition(":")[0].endswith("Error"), (name, mine[name])


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_needs_another_back_end_is_refused_on_both(testbed: Testbed, name: str) -> None:
    for run in on_both(testbed, "every_program", names=[name]):
        assert all("Error: " in result[name] for result in run.results), run.results


def test_ranks_wait_for_whom_they_wait_on_gloo(testbed: Testbed) -> None:
    """Where gloo lets some of a group go early, the testbed lets all wait: right code must not rely on it."""
    ours = testbed.run("who_waits", [{"early": None}] * RANKS, student=False, deadline_seconds=200.0)
    assert ours.failure is None
    early = ours.results[0]
    theirs = testbed.run("who_waits", [{"early": early}] * RANKS, backend="gloo", student=False, deadline_seconds=200.0)
    assert theirs.failure is None
    for name, by_late in early.items():
        for late, mine in by_late.items():
            gloo = theirs.results[int(late)][name][late]
            assert set(mine) <= set(gloo) if name in WAITS_FOR_ALL else mine == gloo, (name, late, mine, gloo)
    assert early["send"] == {"0": [2], "1": [2], "2": [0, 1]}
