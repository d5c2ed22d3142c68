"""The Markdown pages of the repository: their code blocks, commands and links."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUICK_CALIBRATION = shlex.split("--workers 1,2 --sizes '16 KiB,256 KiB' --repeats 2 --model mlp")


@dataclass(frozen=True)
class Page:
    """A page, named by its path from the root."""

    name: str

    @property
    def path(self) -> Path:
        return ROOT / self.name

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without its blocks."""
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    @cached_property
    def all_blocks(self) -> list[tuple[str, str]]:
        """Language ("" for blocks that name none) and content of each block."""
        return re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)

    def blocks(self, language: str) -> list[str]:
        return [body for name, body in self.all_blocks if name == language]

    @property
    def lines(self) -> list[list[str]]:
        """The words of each shell line: of blocks, then of the first column of a table of commands."""
        blocks = "".join(self.blocks("sh")).replace("\\\n", " ")
        rows = re.findall(r"^\| `(distsim [^`]+)` \|", self.text, re.MULTILINE)
        split = (shlex.split(line, comments=True) for line in (*blocks.splitlines(), *rows))
        return [words for words in split if words]

    def commands(self, program: str) -> list[list[str]]:
        return [words for words in self.lines if words[0] == program]

    @property
    def links(self) -> list[str]:
        """The targets of links and pictures within the repository."""
        targets = re.findall(r"\]\(([^)\s]+)\)", self.prose)
        return [target for target in targets if not target.startswith("https://")]

    @property
    def anchors(self) -> set[str]:
        """Anchors as GitHub makes them from headings."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


README = Page("README.md")
BESIDE = [
    Page(path.relative_to(ROOT).as_posix())
    for path in (
        *sorted((ROOT / "course").glob("*.md")),
        ROOT / "labs" / "README.md",
        ROOT / ".github" / "CONTRIBUTING.md",
    )
]
PAGES = [README, *BESIDE]


def run_command(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of a page, run in a folder. A calibration gets fewer sizes, so that it takes seconds."""
    quick = QUICK_CALIBRATION if words[:2] == ["distsim", "calibrate"] else []
    command = [sys.executable, "-m", *words, *quick]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
