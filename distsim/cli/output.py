"""Output of the commands: the console, JSON, warnings, notes, and the options that all commands share."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from distsim.errors import InputError
from distsim.units import cure, parse

PIPE_WIDTH = 110
NOT_APPLICABLE = "–"


class _PathType(click.Path):
    """A path that a file could have."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises InputError for an empty name, a name with a zero byte, and a name that is too long."""
        asked = "path" if param is None else param.human_readable_name if param.metavar is None else param.metavar
        if isinstance(param, click.Option):
            asked = param.opts[-1]
        cure = "name a file or a folder of yours"
        if not str(value):
            raise InputError.of(asked, value, "is empty", cure)
        try:
            os.stat(value)
        except ValueError as error:
            raise InputError.of(asked, value, f"cannot be a path ({error})", cure) from None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise InputError.of(asked, value, f"cannot be a path ({error.strerror})", cure) from None
        return super().convert(value, param, ctx)


PATH = _PathType(path_type=Path)


def _trace_file(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    from distsim.trace.files import check_name

    if path is not None:
        check_name(path)
    return path


trace_option = click.option(
    "--trace",
    type=PATH,
    callback=_trace_file,
    help="Save the trace: .npz, .json or .json.gz (the latter two open in Perfetto).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
labs_option = click.option(
    "--labs", type=PATH, metavar="DIR", help="The folder of all labs (default: here, labs/, or the package's own)."
)


def seconds(option: str, text: str) -> float:
    """The time that an option names, such as "250 ms". Raises InputError."""
    try:
        return parse(text, "second")
    except ValueError as error:
        raise InputError.of(option, text, str(error), cure(error, 'write such as "250 ms"')) from None


def console() -> Console:
    """Standard output: coloured and as wide as the terminal; plain and `PIPE_WIDTH` columns wide in a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PIPE_WIDTH, no_color=True)


def print_json(value: Any) -> None:
    """Prints one JSON document; an infinite number or NaN becomes null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def warn(lines: Iterable[str]) -> None:
    """Prints each warning as a line on standard error."""
    for line in lines:
        click.echo(f"distsim: warning: {line}", err=True)


def wide_table(title: str, *columns: str, **style: Any) -> Table:
    """An empty table of many columns: it needs less room than `table`, without lines between columns."""
    return table(title, *columns, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, **style)


def table(title: str, *columns: str, **style: Any) -> Table:
    """An empty table: the first column is text, the others are numbers. A narrow terminal wraps cells and cuts none."""
    found = Table(title=Text(title), title_justify="left", title_style="bold", **style)
    for number, column in enumerate(columns):
        found.add_column(column, justify="right" if number else "left", overflow="fold")
    return found


def print_notes(lines: Iterable[str]) -> None:
    """Prints sentences under a table; long sentences are not wrapped."""
    for line in lines:
        console().print(Text(f"  {line}"), soft_wrap=True)
