"""The command that starts a fork server, and the environment variables that it and its ranks get."""

from __future__ import annotations

import os
import re
import sys

FORK_SERVER = (sys.executable, "-m", "distsim.testbed.fork_server")
KEPT_VARIABLES = re.compile(  # what Python and its libraries need; no rank's memory has ever held the others
    r"HOME|LANG|LD_LIBRARY_PATH|LOGNAME|PATH|TMPDIR|TZ|USER|(KMP|LC|MKL|OMP)_.*|PYTHON.*"
)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # numpy's further threads would spin beside the ranks, for nothing


def kept_environment() -> dict[str, str]:
    """The variables that a fork server gets, and with it the ranks."""
    return {name: value for name, value in os.environ.items() if KEPT_VARIABLES.fullmatch(name)} | ONE_THREAD
