"""Hostile and broken submissions of the lab 90_sum: each does harm in one place and is right in the rest.

Of most, the body stands in `total`, where `right(tensor)` is what the solution does.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from tests.grading.conftest import SUM

SOLUTION = (SUM / "solution.py").read_text()
FULL, NONE = (3.0, 2.0), (0.0, 0.0)
NO_SUM, NO_COUNT = (0.0, 2.0), (3.0, 0.0)


@dataclass(frozen=True)
class Hostile:
    """content: of tasks.py. points: of the two checks. words: in what was observed of the first that lost some.

    slow: whether it goes on to the deadline.
    """

    content: bytes
    points: tuple[float, float]
    words: str = ""
    slow: bool = False


def in_total(body: str, points: tuple[float, float] = NO_SUM, words: str = "", *, slow: bool = False) -> Hostile:
    code = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    head = "import ctypes, gc, os, shutil, signal, sys, threading, time\nfrom pathlib import Path\n"
    text = f"{SOLUTION}\n\n{head}right = total\n\n\ndef total(tensor):\n{code}\n"
    return Hostile(text.encode(), points, words, slow)


def in_counter(answer: str, words: str) -> Hostile:
    """Each `add` gives that."""
    text = f"{SOLUTION}\n\nimport msgpack\n\n\ndef add(self, number):\n    {answer}\n\n\nCounter.add = add\n"
    return Hostile(text.encode(), NO_COUNT, words)


def in_module(first_line: str | bytes, words: str, *, slow: bool = False) -> Hostile:
    line = first_line.encode() if isinstance(first_line, str) else first_line
    rest = SOLUTION.replace("from __future__ import annotations", "").encode()
    return Hostile(line + b"\n" + rest, NONE, words, slow)


LINE = "from distsim.testbed import frames, rank\nchannel = rank.context._channel\n"

IN_TOTAL = {
    "endless": in_total("while True: pass", words="not finished after", slow=True),
    "fork_bomb": in_total(
        """
        try:
            while True:
                os.fork()
        except OSError:
            while True:  # the alarm that asks a late rank for its line ends a pause
                signal.pause()
        """,
        words="not finished after",
        slow=True,
    ),
    "fork_bomb_that_falls_silent": in_total(
        """
        try:
            while os.fork() == 0:
                pass
        finally:
            os._exit(0)
        """,
        words="ended before its work was done: exit code 0",
    ),
    "thread_bomb": in_total(
        """
        while True:
            threading.Thread(target=signal.pause, daemon=True).start()
        """,
        words="can't start new thread",
    ),
    "daemon": in_total(
        """
        if os.fork() == 0:
            os.setsid()
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while True:
                signal.pause()
        right(tensor)
        """,
        FULL,
    ),
    "prints_a_gigabyte": in_total(
        "for _ in range(1000): print('x' * 10**6)",
        words="printed more than 16 MiB",
    ),
    "writes_a_gigabyte": in_total(
        "with open('large', 'wb') as file:\n    for _ in range(1000): file.write(bytes(10**6))",
        words="OSError",
    ),
    "takes_all_memory": in_total("held = bytearray(2**40)", words="MemoryError"),
    "leaves": in_total("os._exit(0)", words="ended before its work was done: exit code 0"),
    "exits": in_total("sys.exit(0)", words="sys.exit(0) was called"),
    "aborts": in_total("os.abort()", words="SIGABRT"),
    "breaks": in_total("ctypes.string_at(0)", words="SIGSEGV"),
    "stops_itself": in_total("os.kill(os.getpid(), signal.SIGSTOP)", words="not finished after", slow=True),
    "kills_all": in_total(
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for process in [-1, os.getppid(), *range(1, 300)]:
            if process not in (0, os.getpid()):
                try:
                    os.kill(process, signal.SIGKILL)
                except OSError:
                    pass
        right(tensor)
        """,
        FULL,
    ),
    "keyboard": in_total("raise KeyboardInterrupt", words="KeyboardInterrupt"),
    "recursion": in_total("total(tensor)", words="RecursionError"),
    "a_thread_fails_beside_it": in_total(
        """
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        right(tensor)
        """,
        FULL,
    ),
    "a_thread_fails_instead": in_total(
        """
        thread = threading.Thread(target=lambda: right(tensor / 0))
        thread.start()
        thread.join()
        """,
    ),
    "deletes_its_folder": in_total("shutil.rmtree(os.getcwd(), ignore_errors=True)\nright(tensor)", FULL),
    "deletes_all": in_total(
        """
        for top in ("/etc", "/home", "/root", "/run", "/tmp", "/var"):
            shutil.rmtree(top, ignore_errors=True)
        right(tensor)
        """,
        FULL,
    ),
    "writes_outside": in_total("Path('/etc/distsim_was_here').write_text('x')", words="Error"),
    "writes_its_checks": in_total(
        """
        for name in ("checks.py", "lab.ipynb", "ranks.py", "tasks.py"):
            Path(name).write_text("")
        right(tensor)
        """,
        FULL,
    ),
    "asserts_hold": in_total(
        """
        import numpy
        numpy.allclose = numpy.array_equal = numpy.testing.assert_allclose = lambda *_a, **_b: True
        """,
    ),
    "time_stands": in_total("time.time = time.monotonic = time.perf_counter = lambda: 0.0; time.sleep = print"),
    "a_network_of_its_own": in_total(
        """
        dist.get_rank = dist.get_world_size = dist.send = dist.recv = lambda *_: 1
        tensor *= 3
        """,
    ),
    "drivers_of_its_own": in_total("sys.modules['ranks'].summed = None\ntensor *= 3"),
    "prints_a_result": in_total("print('every_rank_has_the_sum: 3 of 3 points\\n{\"do\": \"result\"}', flush=True)"),
    "sends_a_result": in_total(LINE + "frames.send(channel, {'do': 'result', 'value': {'values': [1.5] * 5}})"),
    "sends_points": in_total(LINE + "frames.send(channel, {'do': 'result', 'value': {'points': 3}})", words="KeyError"),
    "sends_a_list": in_total(LINE + "frames.send(channel, {'do': 'result', 'value': [[]] * 9})", words="TypeError"),
    "sends_rubbish": in_total(LINE + "channel.sendall(b'\\xff' * 255)", words="at most"),
    "floods_the_line": in_total(
        LINE + "while True: rank.note('x' * 10**6, 'x' * 10**6)", words="notes of more than 4 MiB"
    ),
    "asks_without_end": in_total(LINE + "while True: dist.isend(tensor, 1 - min(dist.get_rank(), 1))", words="at once"),
    "closes_all": in_total("os.closerange(0, 256)\nwhile True: pass", words="its connection was closed"),
    "prints_over_the_line": in_total(
        LINE + "os.dup2(channel.fileno(), 1)\nos.write(1, b'3 of 3 points')\nright(tensor)", words="asked the network"
    ),
    "steals_answers": in_total(
        """
        from distsim.testbed import rank
        threading.Thread(target=rank.context._channel.recv, args=(10,), daemon=True).start()
        right(tensor)
        """,
        words="",
        slow=True,
    ),
    "an_error_that_cannot_be_told": in_total(
        """
        class Grade(Exception):
            def __str__(self):
                raise SystemError
            __repr__ = __str__
        raise Grade
        """,
        words="Grade",
    ),
    "an_error_of_half_letters": in_total("raise ValueError('\\ud800' * 9)", words=r"\ud800"),
    "an_error_without_a_name": in_total("raise type('', (Exception,), {})", words="(tasks.py:"),
    "an_exit_that_cannot_be_told": in_total(
        """
        class Code:
            def __repr__(self):
                raise SystemError
        sys.exit(Code())
        """,
        words="an error that cannot be printed",
    ),
    "an_endless_error": in_total("raise ValueError('x' * 10**8)", words="xxxx"),
    "an_error_of_ours": in_total(
        "from distsim.errors import RunError\nraise RunError('no ranks can be started here')", words="RunError"
    ),
}  # fmt: skip

IN_COUNTER = {
    "counts_objects": in_counter("return object()", "cannot pass"),
    "counts_timestamps": in_counter("return msgpack.Timestamp(2)", "not a valid frame"),
    "counts_extensions": in_counter("return msgpack.ExtType(7, b'2')", "[7, b'2']"),
    "counts_far": in_counter("return 2**70", "an int beyond 64 bits cannot pass"),
    "counts_letters": in_counter("return '\\ud800'", "UnicodeEncodeError"),
    "counts_deep": in_counter("found = []\n    for _ in range(900): found = [found]\n    return found", ""),
    "counts_very_deep": in_counter("found = []\n    for _ in range(10**5): found = [found]\n    return found", ""),
    "counts_much": in_counter("return [{}] * (22 * 10**5) if number == 2 else number", "outside arrays"),
    "counts_large": in_counter("return torch.zeros(2**25)", "a frame of"),
    "counts_nothing": in_counter("return float('nan')", "nan"),
    "equals_all": in_counter(
        "return type('Always', (int,), {'__eq__': lambda *_: True, '__hash__': int.__hash__})(7)", "[7, 7, 7]"
    ),
}  # fmt: skip

IN_MODULE = {
    "module_leaves": in_module("import os; os._exit(0)", "exit code 0"),
    "module_exits": in_module("import sys; sys.exit('enough')", "sys.exit('enough') was called"),
    "module_loops": in_module("while True: pass", "not finished after", slow=True),
    "module_fails": in_module("1 / 0", "ZeroDivisionError: division by zero (tasks.py:1 in <module>)"),
    "syntax": in_module("def total(:", "SyntaxError"),
    "tabs": in_module("if True:\n        x = 1\n\tx = 2", "TabError"),
    "latin_undeclared": in_module("street = 'Stra\xdfe'".encode("latin-1"), "utf-8"),
    "latin_declared_twice": in_module(b"# coding: no-such-code", "unknown encoding"),
    "nul": in_module(b"x = '\0'", "null bytes"),
    "empty": Hostile(b"", NONE, "has no attribute 'total'"),
    "utf16": Hostile(SOLUTION.encode("utf-16"), NONE, "SyntaxError"),
}
KINDS = IN_TOTAL | IN_COUNTER | IN_MODULE
