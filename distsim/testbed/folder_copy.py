"""A copy of a folder in memory, which can be written to the place where confined code may write."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from distsim.errors import InputError


@dataclass(frozen=True)
class FolderCopy:
    """Folders, files with their mode, and symbolic links. A link out of the folder leads nowhere in the sandbox.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = Path(name, "tasks.py").write_text("x = 1")
    ...     list(FolderCopy.of(Path(name), most_bytes=100).contents)
    ['tasks.py']
    """

    folders: list[str] = field(default_factory=list)
    contents: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, *, most_bytes: int) -> FolderCopy:
        """Reads the folder and skips pipes and devices. Raises InputError if it holds more than `most_bytes`."""
        found, left = cls(), most_bytes
        for place, names, others in os.walk(folder):
            for name in (*names, *others):
                path = Path(place, name)
                relative, kind = str(path.relative_to(folder)), path.lstat()
                if stat.S_ISLNK(kind.st_mode):
                    found.links[relative] = os.readlink(path)
                elif stat.S_ISDIR(kind.st_mode):
                    found.folders.append(relative)
                elif stat.S_ISREG(kind.st_mode):
                    if (left := left - kind.st_size) < 0:
                        raise InputError.of(
                            "folder", str(folder), f"holds more than limits.file_bytes = {most_bytes}",
                            "take out what the ranks do not need, or raise the limit",
                        )  # fmt: skip
                    found.contents[relative] = _read(path), stat.S_IMODE(kind.st_mode) & 0o777
        return found

    def lay_out(self, folder: Path) -> None:
        """Writes everything into `folder`, and creates `folder` if it does not exist."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.folders:
            (folder / name).mkdir()
        for name, (content, mode) in self.contents.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(mode)
        for name, end in self.links.items():
            (folder / name).symlink_to(end)


def _read(path: Path) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read()
