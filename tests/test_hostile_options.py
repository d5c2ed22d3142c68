"""Every option and argument of every command refuses each hostile value: exit code 2, one message, no file touched."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

import click
import pytest

from distsim import example, simulate
from distsim.cli.main import distsim, main
from distsim.errors import shown
from distsim.transformer_profile import transformer_profile

SLOW_SECONDS = 20.0  # of one refusal, on a busy machine
LONG = "x" * 5000
DIGITS = "9" * 5000  # more than Python turns into a number
TEXTS = ["", "a\0b", "a\nb", "\udcff", LONG]
NUMBERS = [*TEXTS, "nan", "x", "-1"]
WHOLE = [*NUMBERS, "1.5", "inf"]
MISSING = ["", "a\0b", "a\nb", "\udcff", LONG, "absent/x", "/proc/absent"]
UNWRITABLE = ["", "a\0b", LONG, "absent/x", "/proc/x", "/dev/null", "folder"]
BROKEN = ["folder", "empty", "binary", "broken", "/dev/zero"]  # as files; each suffix that is read is tried too


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def read(*suffixes: str) -> list[str]:
    """What is no file to read: nothing there, a folder, and broken content under each suffix."""
    return [*MISSING, *BROKEN, *(f"{name}{suffix}" for name in ("empty", "binary", "broken") for suffix in suffixes)]


def written(*suffixes: str) -> list[str]:
    """What cannot be written, with each suffix that is written."""
    return [*UNWRITABLE, *(f"{name}{end}" for name in ("a\0b", LONG, "absent/x", "/proc/x") for end in suffixes)]


TRACES = read(".npz", ".json", ".json.gz")
NO_RULES = [*TEXTS, "x", ":", "absent.py:X", "folder:X", "a\0b:X", "/dev/zero:X"]
RULES = [*NO_RULES, "binary.py:X", "broken.py:X", "empty.py:X"]
MODELS = [*TEXTS, "x", ":", "absent.py:build", "folder:build", "a\0b.py:build", "/dev/zero:build", f"{LONG}.py:build"]
LABS = [*MISSING, "s.toml"]
NO_FOLDERS = ["", "a\0b", LONG, "/proc/x", "/dev/null", "s.toml"]  # nor can they be made
DEADLINES = [*NUMBERS, "0", "inf", "1e400"]
MEASURED = {"rule": NO_RULES, "deadline": DEADLINES}  # the server of a real run loads the rule, and tells faults

# What else each command is given, and the hostile values of its parameters.
PROFILE = transformer_profile(1, 64, 4, vocabulary=100, sequence=32, batch=1, operations_per_second=1e12)
SCHEDULERS = ["", "a\0b", "x", "tcp://", "tcp://x:0", "tcp://x:99999999", f"x:{DIGITS}"]
COMMANDS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "simulate": (
        "s.toml --trace part.npz",
        {
            "file": read(".toml"),
            "calibration": read(".json"),
            "rule": RULES,
            "trace": written(".npz", ".json"),
            "start": [*NUMBERS, "1", "nan s", "1e400 s"],
            "end": [*NUMBERS, "1", "0 s", "-1 s", "nan s"],
            "memory": [*NUMBERS, "1", "0 GB", "-1 GB", "nan GB", "1e400 GB", "1 B"],
            "optimizer": [*TEXTS, "x", "sgd"],
        },
    ),
    "measure": (
        "s.toml",
        MEASURED
        | {
            "file": read(".toml"),
            "trace": written(".npz", ".json.gz"),
            "nnodes": [*WHOLE, "0", DIGITS],
            "node_rank": [*WHOLE, "1", "-1", DIGITS],
            "rdzv_endpoint": [*TEXTS, "x", "x:", ":1", "x:0", "x:65536", "x:-1", f"x:{DIGITS}", "a\0b:1", f"{LONG}:1"],
        },
    ),
    "compare": (
        "s.toml",
        MEASURED
        | {
            "files": read(".toml"),
            "calibration": read(".json"),
            "predicted": TRACES,
            "measured": TRACES,
            "html": written(".html"),
        },
    ),
    "figure": (
        "timeline t.npz --out f.html",
        {
            "kind": [*TEXTS, "x"],
            "files": [*TRACES, *read(".toml")],
            "out": [*written(".html", ".svg", ".png"), "x", "x.txt"],
            "start_seconds": [*NUMBERS, "1", "nan s", "1e400 s", f"{DIGITS} s"],
            "end_seconds": [*NUMBERS, "1", "0 s", "-1 s", "nan s"],
            "step": [*WHOLE, "1000000", DIGITS],
            "metric": [*TEXTS, "x"],
            "optimizer": [*TEXTS, "x", "SGD"],
        },
    ),
    "calibrate": (
        "",
        {
            "bandwidth": [*NUMBERS, "0 Gbit/s", "-1 Gbit/s", "nan Gbit/s", "1e400 Gbit/s", f"{DIGITS} Gbit/s"],
            "latency": [*NUMBERS, "-1 s", "nan s", "1e400 s", f"{DIGITS} s"],
            "out": written(".json"),
            "html": written(".html"),
            "workers": [*WHOLE, "0", "1,,x", "²", "1000000", DIGITS],
            "busy": [*WHOLE[1:], "0", "1,x", "²", "1000000", DIGITS],
            "sizes": [*NUMBERS, "1 MiB", "0 B,1 MiB", "-1 MiB,1 MiB", "nan MiB,1 MiB", "1 EiB,2 EiB"],
            "models": [*TEXTS, "x"],
            "batch": [*WHOLE, "0", "1000000", DIGITS],
            "pause": [*NUMBERS, "-1 s", "nan s", "1e400 s", "1e6 s"],
            "repeats": [*WHOLE, "0", "1000000", DIGITS],
        },
    ),
    "profile": (
        "absent.py:build",
        {
            "model": [*MODELS, "binary.py:build", "broken.py:build", "empty.py:build", "tasks.py:1x", "s.toml:build"],
            "batch": [*WHOLE, "0", DIGITS],
            "device": [*TEXTS, "x", "tpu"],
            "steps": [*WHOLE, "0", "1000000", DIGITS],
            "busy": [*WHOLE, "0", "1000000", DIGITS],
            "trace": read(".json"),
            "out": written(".json"),
        },
    ),
    "plan": (
        "absent.json --cluster s.toml",
        {
            "model": [*MODELS, "binary.py:build", "broken.py:build", "empty.py:build", *read(".json")],
            "cluster": read(".toml"),
            "memory": [*NUMBERS, "1", "0 GB", "-1 GB", "nan GB", "1e400 GB", f"{DIGITS} GB"],
            "optimizer": [*TEXTS, "x"],
            "activation": [*NUMBERS, "1", "-1 MB", "nan MB", "1e400 MB"],
            "batch": [*WHOLE, "0", DIGITS],
            "workers": [*WHOLE, "0", "257", DIGITS],
            "scheduler": SCHEDULERS,
            "by": [*TEXTS, "x"],
            "out": [*written(".html", ".svg", ".png"), "x", "x.txt"],
            "scenarios": [*NO_FOLDERS, "absent/x", "full"],
        },
    ),
    "sweep": (
        "s.toml --vary seed=1",
        {
            "file": read(".toml"),
            "vary": [*TEXTS, "x", "=", "seed", "seed=", "=1", "seed=1:1000000000000", "seed=3:1", "seed=1:9:0"],
            "calibration": read(".json"),
            "scheduler": SCHEDULERS,
            "workers": [*WHOLE, "0", "257", DIGITS],
            "out": [*written(".csv", ".parquet"), "x", "x.txt"],
        },
    ),
    "validate": ("", {"cases": read(".json")}),
    "bench": ("--quick", {"only": [*TEXTS[1:], "warp drive"]}),
    "doctor": ("", {}),
    "course": ("", {"folder": NO_FOLDERS, "port": [*WHOLE, "0", "1023", "65536", DIGITS]}),
    "lab list": ("", {"labs": LABS}),
    "lab start": ("3 new", {"name": [*TEXTS, "99", "x", DIGITS], "folder": NO_FOLDERS, "labs": LABS}),
    "lab run": (
        "3 --folder folder",
        {
            "name": [*TEXTS, "99", "x", DIGITS],
            "folder": MISSING,
            "ranks": [*WHOLE, "0", "65", DIGITS],
            "deadline": DEADLINES,
            "labs": LABS,
        },
    ),
    "lab stub": ("3", {"name": [*TEXTS, "99", "x", DIGITS], "labs": LABS}),
    "lab power": (
        "3",
        {
            "name": [*TEXTS, "99", "x", DIGITS],
            "keys": [*TEXTS, "x", "solution:x:1:off_by_one"],
            "jobs": [*WHOLE, "0", "65", DIGITS],
            "sample": [*WHOLE, "0", DIGITS],
            "seed": [*WHOLE, DIGITS],
            "labs": LABS,
        },
    ),
    "lab release": ("new", {"out": [*NO_FOLDERS, "full"], "labs": LABS}),
    "contest": (
        "folder",
        {
            "submissions": MISSING,
            "seeds": [*WHOLE, "0", "1001", DIGITS],
            "held_out": [*WHOLE, DIGITS],
            "problem": [*MISSING, "folder", "s.toml"],
            "out": [*TEXTS, "x", *written(".html")],
        },
    ),
    "grade": (
        "3 --submission tasks.py",
        {
            "name": [*TEXTS, "99", "x", DIGITS],
            "path": MISSING,
            "folder": [*MISSING, "s.toml"],
            "jobs": [*WHOLE, "0", "65", DIGITS],
            "out": NO_FOLDERS,
            "labs": LABS,
            "seed": [*WHOLE, DIGITS],
        },
    ),
}  # fmt: skip
# Where a parameter takes the place of others, or needs another; the usual port may be in use.
INSTEAD = {
    ("measure", "nnodes"): "s.toml --node-rank 2 --rdzv-endpoint x:1",
    ("measure", "node_rank"): "s.toml --nnodes 1 --rdzv-endpoint x:1",
    ("measure", "rdzv_endpoint"): "s.toml --nnodes 2 --node-rank 0",
    ("compare", "predicted"): "--measured t.npz",
    ("compare", "measured"): "--predicted t.npz",
    ("figure", "metric"): "heat-map t.csv --out f.html",
    ("figure", "optimizer"): "memory t.npz --out f.html",
    ("plan", "scheduler"): "good.json --cluster s.toml",
    ("figure", "step"): "collective t.npz --out f.html",
    ("calibrate", "bandwidth"): "--emulate",
    ("calibrate", "latency"): "--emulate",
    ("grade", "folder"): "3",
    ("course", "folder"): f"new --port {free_port()}",
}


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its name, the ones of a group under the group's."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield path + name, command


def taking(command: click.Command) -> dict[str, click.Parameter]:
    """The parameters that take a value."""
    return {str(one.name): one for one in command.params if not getattr(one, "is_flag", False)}


ALL = dict(commands(distsim))


def test_no_parameter_is_left_out() -> None:
    assert {name: set(values) for name, (_, values) in COMMANDS.items()} == {
        name: set(taking(command)) for name, command in ALL.items()
    }


def called(name: str, parameter: click.Parameter, value: str) -> list[str]:
    """The command line with the value in the place of the good one."""
    others = INSTEAD.get((name, str(parameter.name)), COMMANDS[name][0]).split()
    if isinstance(parameter, click.Option):
        return [*name.split(), *others, f"{parameter.opts[-1]}={value}"]
    place = [one.name for one in ALL[name].params if isinstance(one, click.Argument)].index(parameter.name)
    others[place : place + 1] = [value]
    return [*name.split(), *others]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Good files and broken ones in the current folder; a process that starts is a failure."""
    ring = example("backup_server").replacing({"steps": 2})
    (tmp_path / "s.toml").write_text(ring.dumps(), "utf-8")
    simulate(ring).save(tmp_path / "t.npz")
    (tmp_path / "t.csv").write_text("seed,step_seconds_median\n1,2\n", "utf-8")
    PROFILE.save(tmp_path / "good.json")
    (tmp_path / "tasks.py").write_text("", "utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for suffix in ("", ".toml", ".json", ".json.gz", ".npz", ".py", ".csv"):
        (tmp_path / f"empty{suffix}").touch()
        (tmp_path / f"binary{suffix}").write_bytes(bytes(range(256)))
        (tmp_path / f"broken{suffix}").write_text('{"a": [1, ', "utf-8")
    monkeypatch.chdir(tmp_path)

    def started(*_arguments: object, **_options: object) -> NoReturn:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", started)
    monkeypatch.setattr(ProcessPoolExecutor, "submit", started)
    return tmp_path


def content(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def fault(arguments: list[str], parameter: click.Parameter, value: str) -> str | None:
    """What is wrong with the answer to a hostile value; None where it is a refusal in one message."""
    said = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    sys.argv = ["distsim", *arguments]
    before = monotonic()
    code: Any = 0
    with redirect_stdout(said), redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code
        except Exception as error:  # noqa: BLE001 - a traceback is what is looked for
            return f"{type(error).__name__}: {str(error)[:200]}"
    said.flush()
    text = said.buffer.getvalue().decode()  # type: ignore[attr-defined] # a BytesIO
    seconds = monotonic() - before
    *_, message = text.splitlines() or [""]
    names = [parameter.opts[-1].lstrip("-"), parameter.human_readable_name, shown(value)[1:-1] or "''"]
    if code != 2:
        return f"ended with {code}: {text[:200]}"
    if " Cure: " not in message or not message.startswith("distsim: "):
        return f"no message in one line: {text[:300]}"
    if not any(name.lower() in message.lower() for name in names):
        return f"names neither {parameter.opts} nor the value: {message}"
    if len(message) > 600:
        return f"a message of {len(message)} characters: {message[:200]}"
    return f"took {seconds:.0f} s" if seconds > SLOW_SECONDS else None


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, key) for name, command in ALL.items() for key in taking(command)]
)
def test_a_hostile_value_is_refused_in_one_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, parameter: str
) -> None:
    asked = taking(ALL[name])[parameter]
    monkeypatch.setattr(sys, "argv", [])
    faults = {}
    for value in COMMANDS[name][1][parameter]:
        before = content(folder)
        wrong = fault(called(name, asked, value), asked, value)
        if wrong is None and content(folder) != before:
            wrong = "a file was left or altered"
        if wrong:
            faults[shown(value)] = wrong
    assert not faults, "\n".join(f"{value}: {wrong}" for value, wrong in faults.items())
