"""`distsim`: the group of commands, and how errors end it.

Exit codes: 0 fine; 1 a row of an accuracy table does not hold; 2 bad input or a missing right (one message, no
traceback); 3 the real run failed (which rank, where); 130 interrupted; 143 a real run ended by SIGTERM.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import click
from pydantic_core import PydanticSerializationError

from distsim import __version__
from distsim.cli.commands import Commands
from distsim.cli.entry import INTERRUPTED
from distsim.cli.usage_errors import explained
from distsim.errors import DistsimError, InputError
from distsim.extras import EXTRAS, missing

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
NAMES = (
    "bench", "calibrate", "compare", "contest", "course", "doctor", "figure", "grade", "lab", "measure", "profile",
    "simulate", "sweep", "validate",
)  # fmt: skip
PLACES = {name: f"distsim.cli.{name}:{name}" for name in NAMES} | {"plan": "distsim.cli.plan:plan_command"}


@click.group(
    cls=Commands,
    places=PLACES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="distsim")
def distsim() -> None:
    """Predict a distributed training run, run it for real, and explain the gap.

    A scenario FILE (TOML) describes a run: cluster, compute, workload, policy and communication.
    Start from a file in the folder distsim/examples.
    """


def main(loading: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
    """Runs the command line and ends the process with its exit code. loading: around the import of a command."""
    try:
        distsim.main(prog_name="distsim", standalone_mode=False, obj=loading)
    except DistsimError as error:
        _end(f"distsim: {error}", error.exit_code)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRAS:
            raise
        _end(f"distsim: {missing(package, 'this command')}", InputError.exit_code)
    except click.exceptions.Abort:
        _end("distsim: interrupted", INTERRUPTED)
    except click.UsageError as error:
        _end(explained(error), InputError.exit_code)
    except click.ClickException as error:
        _end(f"distsim: {error.format_message()}", InputError.exit_code)
    except KeyboardInterrupt:
        _end("distsim: interrupted", INTERRUPTED)
    except PydanticSerializationError as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):  # a Ctrl-C while pydantic wrote a scenario
            raise
        _end("distsim: interrupted", INTERRUPTED)
    except OSError as error:
        if error.errno not in FULL:
            raise
        _end(f"distsim: {error.strerror}. Cure: free some space, or write elsewhere", InputError.exit_code)
    except MemoryError:
        _end("distsim: this needs more memory than there is. Cure: take fewer steps or workers", InputError.exit_code)


def _end(message: str, code: int) -> None:
    click.echo(message, err=True)
    sys.exit(code)
