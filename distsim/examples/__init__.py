"""The scenarios of the first chapter: files to copy, and objects that notebooks and docstrings start from."""

from __future__ import annotations

from importlib import resources

from distsim.scenario import Scenario

NAMES = ("synchronous_ring", "backup_server")


def example(name: str) -> Scenario:
    """One of the scenarios in `NAMES`.

    >>> example("backup_server").policy
    Backup(backups=1, cancel=False)
    """
    return Scenario.loads(resources.files(__name__).joinpath(f"{name}.toml").read_text("utf-8"), source=name)
