"""How many examples the longest property tests draw."""

from __future__ import annotations

import os

SHARE = 5


def reduced(whole: int) -> int:
    """A fifth of `whole` in `make test`; all of it in `make test-more` and `make test-all`."""
    everything = "whole" in (os.environ.get("DISTSIM_EXAMPLES"), os.environ.get("DISTSIM_TESTS"))
    return whole if everything else whole // SHARE
