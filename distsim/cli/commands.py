"""Groups of commands, which import a command when it is asked for, and answer a wrong name with the nearest one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import click

from distsim.errors import closest, problem


class Commands(click.Group):
    """A group of commands. places: where a command is that is imported later, as name: "module:attribute".

    The object of the group's context, if there is one, makes a context manager for imports.

    >>> group = Commands("distsim", places={"doctor": "distsim.cli.doctor:doctor"})
    >>> group.list_commands(click.Context(group)), group.get_command(click.Context(group), "doctor")
    (['doctor'], <Command doctor>)
    """

    def __init__(self, *given: Any, places: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(*given, **more)
        self._places = dict(places or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands; nothing is imported."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None for an unknown name."""
        self._import(ctx, [cmd_name])
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does. All commands are imported for it, since each has its own help."""
        self._import(ctx, self.list_commands(ctx))
        super().format_commands(ctx, formatter)

    def _import(self, ctx: click.Context, names: Iterable[str]) -> None:
        if later := [name for name in names if name in self._places]:
            with (ctx.obj or nullcontext)():
                for name in later:
                    module, _, attribute = self._places[name].partition(":")
                    self.add_command(getattr(import_module(module), attribute), name)
                    del self._places[name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with another message for an unknown command."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            text = problem("command", args[0], "is not a command", nearest(args[0], self.list_commands(ctx)))
            raise click.UsageError(text, ctx)
        return super().resolve_command(ctx, args)


def nearest(wrong: str, names: Iterable[str]) -> str:
    """The cure for a wrong name.

    >>> nearest("simulat", ["simulate", "sweep"]), nearest("x", ["simulate", "sweep"])
    ('write simulate', 'take one of simulate, sweep')
    """
    known = list(names)
    close = closest(wrong, known)
    return f"write {close}" if close else f"take one of {', '.join(known)}"
