"""How commands talk: tables with colour on a terminal, plain text in a pipe, JSON on request."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from distsim.trace.files import check_name

PIPE_WIDTH = 110
NOT_APPLICABLE = "–"


def _trace_file(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        check_name(path)
    return path


trace_option = click.option(
    "--trace",
    type=click.Path(path_type=Path),
    callback=_trace_file,
    help="Save the trace: .npz, .json or .json.gz (the latter two open in Perfetto).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for our tables in a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PIPE_WIDTH, no_color=True)


def print_json(value: Any) -> None:
    """One JSON document; a number that JSON cannot hold is null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def warn(lines: Iterable[str]) -> None:
    """A line each on standard error."""
    for line in lines:
        click.echo(f"distsim: warning: {line}", err=True)


def print_notes(lines: Iterable[str]) -> None:
    """Sentences under a table, as long as they are."""
    for line in lines:
        console().print(Text(f"  {line}"), soft_wrap=True)
