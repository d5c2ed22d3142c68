"""A program that runs one notebook through nbval. It and all its child processes end when its parent process ends.

    python -m distsim.runtime.notebook_program NOTEBOOK SETTINGS FOLDER CELL_SECONDS START_SECONDS

SETTINGS: a pytest.ini, in whose folder pytest works. FOLDER: for the kernel's sockets. CELL_SECONDS: the time limit of
a cell. START_SECONDS: that of the kernel's start. The exit status is pytest's.

It imports little of distsim, since every grading waits for it.
"""

from __future__ import annotations

import gc
import sys
from functools import partial
from pathlib import Path

from distsim.runtime.launch import lifeline, process_tree


def main(notebook: Path, settings: Path, folder: Path, cell_seconds: float, start_seconds: float) -> int:
    """Runs the notebook and returns pytest's exit status."""
    lifeline.keep(process_tree.abandon, inherit=False)
    gc.disable()  # this process ends with the notebook, so collecting would only delay it
    import pytest

    _kernels_on_sockets(folder)
    return int(
        pytest.main(
            [
                "-p", "nbval.plugin", "-p", "no:cacheprovider", "-c", str(settings), f"--rootdir={settings.parent}",
                "--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={cell_seconds}",
                f"--nbval-kernel-startup-timeout={start_seconds}", "-q", "--tb=short", "--color=no", str(notebook),
            ]
        )
    )  # fmt: skip


def _kernels_on_sockets(folder: Path) -> None:
    """Makes nbval's kernel listen on sockets in `folder`.

    By default a kernel chooses TCP ports before it binds them, so two concurrent notebooks may choose the same port.
    """
    from jupyter_client.manager import KernelManager
    from nbval import kernel

    kernel.KernelManager = partial(KernelManager, transport="ipc", connection_file=str(folder / "kernel.json"))


if __name__ == "__main__":
    PATHS, SECONDS = sys.argv[1:4], sys.argv[4:]
    sys.exit(main(Path(PATHS[0]), Path(PATHS[1]), Path(PATHS[2]), float(SECONDS[0]), float(SECONDS[1])))
