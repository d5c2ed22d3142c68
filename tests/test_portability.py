"""The simulator, the figures and the command line are imported without the modules that only Unix has."""

from __future__ import annotations

import subprocess
import sys

CODE = '''
import builtins, os, pkgutil, signal, sys, types
from importlib import import_module

ABSENT = {"fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "syslog"}
SIGNALS = {"SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV"}
UNIX = ("sched_", "SCHED_", "fork", "killpg", "getuid", "gete", "setsid", "wait4", "WNOHANG", "posix_", "uname")
NEED_UNIX = {"runtime", "testbed", "grading", "explorers", "course", "frameworks", "rule_process", "__main__"}


def without(module, absent):
    found = types.ModuleType(module.__name__)
    found.__dict__.update({name: value for name, value in vars(module).items() if not absent(name)})
    return found


WINDOWS = {
    "os": without(os, lambda name: name.startswith(UNIX)),
    "signal": without(signal, lambda name: name.startswith("SIG") and name.isupper() and name not in SIGNALS),
}
real = builtins.__import__


def imported(name, globals=None, locals=None, fromlist=(), level=0):
    """What distsim's own modules get from `import`; others get what is there."""
    if (globals or {}).get("__name__", "").startswith("distsim"):
        if name in ABSENT:
            raise ModuleNotFoundError(f"{globals['__name__']} imports {name}")
        if name in WINDOWS:
            return WINDOWS[name]
    return real(name, globals, locals, fromlist, level)


builtins.__import__ = imported
import click, distsim, distsim.cli.main
context = click.Context(distsim.cli.main.distsim)
for name in context.command.list_commands(context):
    context.command.get_command(context, name)
from distsim.figures import *
for found in pkgutil.walk_packages(distsim.__path__, "distsim."):
    if not NEED_UNIX & set(found.name.split(".")):
        import_module(found.name)
print(len([name for name in sys.modules if name.startswith("distsim")]))
'''


def test_simulator_figures_and_command_line_are_imported_without_unix() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150
