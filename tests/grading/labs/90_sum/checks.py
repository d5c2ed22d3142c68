"""What is asked of a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distsim.grading import Finding, check

if TYPE_CHECKING:
    from distsim.testbed import Testbed


@check(points=3, hint="Every rank needs what every other one had.")
def every_rank_has_the_sum(testbed: Testbed) -> Finding:
    """On three ranks, with numbers that only their owner knows."""
    own = list(testbed.rng.uniform(1.0, 2.0, (3, 5)))
    run = testbed.run("summed", arguments=[{"values": values} for values in own])
    expected = np.sum(own, axis=0)
    if run.failure:
        return Finding.failed(run, expected=expected)
    wrong = [rank for rank in range(3) if not np.allclose(run.results[rank]["values"], expected)]
    observed = run.results[wrong[0]]["values"] if wrong else expected
    return Finding.of(observed=observed, expected=expected, passed=not wrong, where=f"rank {wrong[0]}" if wrong else "")


@check(points=2, hint="Keep the count between the calls.")
def the_counter_counts(testbed: Testbed) -> Finding:
    """Half of the points for a first count that is right."""
    run = testbed.run("counted", arguments=[{"numbers": [2, 3, 5]}])
    if run.failure:
        return Finding.failed(run, expected=[2, 5, 10])
    counts = list(run.results[0]["counts"])
    share = 1.0 if counts == [2, 5, 10] else 0.5 if counts[:1] == [2] else 0.0
    return Finding.of(observed=counts, expected=[2, 5, 10], share=share)
