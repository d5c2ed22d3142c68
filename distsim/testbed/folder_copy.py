"""A copy in memory of some files of a folder, which can be written to the place where confined code may write."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from distsim.errors import InputError


@dataclass(frozen=True)
class FolderCopy:
    """Files with their mode, and symbolic links. A link out of the folder leads nowhere in the sandbox.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = Path(name, "tasks.py").write_text("x = 1")
    ...     _ = Path(name, "checks.py").write_text("x == 1")
    ...     list(FolderCopy.of(Path(name), ["tasks.py", "absent.py"], most_bytes=100).contents)
    ['tasks.py']
    """

    contents: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, names: Iterable[str], *, most_bytes: int) -> FolderCopy:
        """Reads the files of these names, and skips missing files, folders, pipes and devices.

        Raises InputError if they hold more than `most_bytes`.
        """
        found, left = cls(), most_bytes
        for name in names:
            path = folder / name
            if not os.path.lexists(path):
                continue
            kind = path.lstat()
            if stat.S_ISLNK(kind.st_mode):
                found.links[name] = os.readlink(path)
            elif stat.S_ISREG(kind.st_mode):
                if (left := left - kind.st_size) < 0:
                    raise InputError.of(
                        "folder", str(folder), f"holds more than limits.file_bytes = {most_bytes}",
                        "take out what the ranks do not need, or raise the limit",
                    )  # fmt: skip
                found.contents[name] = _read(path), stat.S_IMODE(kind.st_mode) & 0o777
        return found

    def lay_out(self, folder: Path) -> None:
        """Writes everything into `folder`, and creates `folder` if it does not exist."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, (content, mode) in self.contents.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(mode)
        for name, end in self.links.items():
            (folder / name).symlink_to(end)


def _read(path: Path) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read()
