"""Messages about a wrong command line, with a cure: the nearest command or option, or the help to read."""

from __future__ import annotations

import re

import click

from distsim.cli.commands import nearest
from distsim.errors import problem, shortened


def explained(error: click.UsageError) -> str:
    """The message of a usage error: the usage line, and a sentence that ends in a cure."""
    context = error.ctx
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # of click 8.2 and later
        return error.format_message()
    if context is None:
        return f"distsim: {_sentence(error)} Cure: distsim --help shows how it is called"
    if isinstance(error, click.NoSuchOption):
        options = [name for option in context.command.get_params(context) for name in option.opts if "--" in name]
        rule = f"is not an option of {context.command_path}"
        text = problem("option", error.option_name, rule, nearest(error.option_name, options))
    elif isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        option = error.param
        value = option.metavar or option.type.name.upper()
        text = f"{_sentence(error)} Cure: add {option.opts[-1]} {value}. {option.help}"
    elif " Cure: " in error.message:
        text = error.message
    else:
        text = f"{_sentence(error)} Cure: {context.command_path} --help shows how it is called"
    return f"{context.get_usage()}\ndistsim: {text}"


def _sentence(error: click.UsageError) -> str:
    text = re.sub(r"\S{81,}", lambda word: shortened(word[0]), error.format_message().strip().rstrip("."))
    return f"{text[0].lower()}{text[1:]}."
