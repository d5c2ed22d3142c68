"""A broken rule of the user's is told before any process starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from distsim.errors import InputError
from distsim.examples import example
from distsim.runtime import measure as module

BROKEN = {
    "class Other:\n    pass\n": "has no class Mine",
    "class Mine:\n    pass\n": "Mine has no method arrived",
    "class Mine:\n  def __init__(self, limit): 0\n  def arrived(self): 0\n": "cannot be made without limit",
    "class Mine(\n": "raised SyntaxError at rule.py:1",
    "raise OSError('no disk')\n": "raised OSError at rule.py:1: no disk",
}


@pytest.mark.parametrize(("text", "fault"), BROKEN.items(), ids=BROKEN.values())
def test_a_broken_rule_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, fault: str) -> None:
    monkeypatch.setattr(module, "Launch", lambda *_, **__: pytest.fail("processes were about to start"))
    path = tmp_path / "rule.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=fault):
        module.measure(example("backup_server"), rule=f"{path}:Mine")
