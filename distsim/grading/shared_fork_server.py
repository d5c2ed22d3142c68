"""A fork server for the checks of several notebooks: it imports torch once, while the notebooks start."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from distsim.runtime.launch.owned_process import started
from distsim.testbed.environment import FORK_SERVER, kept_environment

MOST_WAITING = 64  # testbeds that have connected while the server is at work


@contextmanager
def shared_fork_server(imports: Sequence[str] = ()) -> Iterator[Path]:
    """Where the server listens, a path for `Testbed`. At the end of the block the server and all its runs are ended.

    imports: names of further modules that it imports at once.
    """
    with (
        tempfile.TemporaryDirectory(prefix="distsim-fork-") as made,
        socket.socket(socket.AF_UNIX) as listener,
        open(os.devnull, "wb") as nowhere,
    ):
        place = Path(made) / "socket"
        listener.bind(str(place))
        listener.listen(MOST_WAITING)
        with started(
            [*FORK_SERVER, str(listener.fileno()), "-", *imports],
            environment=kept_environment(),
            stdout=nowhere.fileno(),
            stderr=nowhere.fileno(),
            folder=Path(made),
            descriptors=[listener.fileno()],
        ):
            yield place
