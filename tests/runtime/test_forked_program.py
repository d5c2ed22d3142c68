"""A forked program is as one that a new Python runs, and has what the process has imported that forked it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

# Forks ranks in a process of its own, as torchrun's agent does, and prints their exit codes.
AGENT = """
import json, os, random, signal, socket, sys
import numpy.random
from distsim.runtime.launch.forked_program import fork_program

signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGINT, signal.SIG_IGN)
listening = socket.create_server(("127.0.0.1", 0))
environment = {**os.environ, "WHO": "rank"}
del environment["FORGOTTEN"]
ranks = [fork_program([sys.executable, "-u", *sys.argv[1:]], environment) for _ in range(2)]
for rank in ranks:
    assert os.getpgid(rank) == rank
    assert os.getsid(rank) == os.getsid(0)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks]))
"""


def codes(program: str, folder: Path, *arguments: str, module: bool = False) -> tuple[list[int], str, str]:
    """The exit codes of two ranks that run `program`, and what all of them printed and complained."""
    (folder / "program.py").write_text(program)
    entry = ["-m", "program"] if module else [str(folder / "program.py")]
    done = subprocess.run(
        [sys.executable, "-u", "-c", AGENT, *entry, *arguments], capture_output=True, text=True, timeout=60, cwd=folder,
        env=os.environ | {"FORGOTTEN": "1", "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(folder)])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *printed, last = done.stdout.splitlines()
    return json.loads(last), "\n".join(printed), done.stderr


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("", 0),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(9)", 9),
        ("import sys; sys.exit('why')", 1),
        ("import os; os._exit(7)", 7),
        ("import sys; sys.stdout.close()", 0),
        ("1 / 0", 1),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: os._exit(5)", 5),
    ],
)
def test_it_ends_as_in_a_new_python(program: str, code: int, tmp_path: Path) -> None:
    found, _, said = codes(program, tmp_path)
    assert found == [code, code]
    assert ("ZeroDivisionError" in said) == (program == "1 / 0")
    assert ("why\n" in said) == ("why" in program)
    by_itself = subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL, timeout=60)
    assert by_itself.returncode == code


STATE = """
import json, os, random, sys
import numpy

open_ = [int(number) for number in os.listdir("/proc/self/fd")]
print(json.dumps({
    "name": __name__, "argv": sys.argv, "path": sys.path[0], "who": os.environ.get("WHO"),
    "forgotten": os.environ.get("FORGOTTEN"), "leads": os.getpgid(0) == os.getpid(),
    "sockets": [n for n in open_ if os.path.exists(f"/proc/self/fd/{n}") and n > 2],
    "drawn": [float(numpy.random.random()), random.random()],
}) + "\\n", end="")  # one write, which no other rank's interrupts
"""


@pytest.mark.parametrize("module", [False, True])
def test_it_finds_what_a_new_python_finds(module: bool, tmp_path: Path) -> None:
    found, printed, _ = codes(STATE, tmp_path, "--steps", "3", module=module)
    assert found == [0, 0]
    states: list[dict[str, Any]] = [json.loads(line) for line in printed.splitlines()]
    assert len(states) == 2
    for state in states:
        assert state["name"] == "__main__"
        assert state["argv"] == [str(tmp_path / "program.py"), "--steps", "3"]
        assert (state["who"], state["forgotten"], state["leads"]) == ("rank", None, True)
        assert not state["sockets"], "a descriptor of torchrun's is open in the rank"
        assert module or state["path"] == str(tmp_path)
    drawn = [state["drawn"] for state in states]
    assert drawn[0][0] != drawn[1][0], "two ranks draw the same from numpy"
    assert drawn[0][1] != drawn[1][1], "two ranks draw the same from random"


@pytest.mark.real
def test_ranks_are_forked_from_one_that_has_imported_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank's command line is that of the process which forked it, and its modules are there from the start."""
    from distsim.runtime.launch import fork_client
    from distsim.runtime.launch.launcher import Launch, launched

    fork_client.end()
    before = set(psutil.Process().children())
    monkeypatch.setenv("FOUND", str(tmp_path))
    script = tmp_path / "rank.py"
    script.write_text(
        "import json, os, sys\n"
        "from pathlib import Path\n"
        "loaded = 'torch' in sys.modules\n"
        "import psutil\n"
        "from distsim.runtime.launch import rank_context\n"
        "with rank_context.entered() as context:\n"
        "    own, above = psutil.Process(), psutil.Process().parent()\n"
        "    found = {'loaded': loaded, 'same': own.cmdline() == above.cmdline(), 'words': own.cmdline()}\n"
        "    Path(os.environ['FOUND'], f'{context.rank}.json').write_text(json.dumps(found))\n"
    )
    with launched(Launch("trial", ["worker 0", "worker 1"], [str(script)], {}, 120.0, imports=["torch"])):
        found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for one in found:
        assert one["loaded"], "the rank must import torch itself"
        assert one["same"]
        assert "distsim.runtime.launch.fork_server" in one["words"]
    fork_client.end()
    assert set(psutil.Process().children()) <= before, "a process is left"
