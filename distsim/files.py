"""Reading files up to a size, and replacing files at once.

The largest size keeps an endless device from filling the memory. A new file is written under a temporary name and then
renamed, so that a reader sees either the old file or the new one.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO

from distsim.errors import InputError

MEGABYTE = 10**6


def read(path: Path | Traversable, most_megabytes: int) -> bytes:
    """The content of the file. Raises OSError, also where the file is larger than `most_megabytes`."""
    try:
        with path.open("rb") as stream:
            content = stream.read(most_megabytes * MEGABYTE + 1)
    except ValueError as error:
        raise _no_name(path, error) from None
    if len(content) > most_megabytes * MEGABYTE:
        raise OSError(errno.EFBIG, f"it holds more than {most_megabytes} MB", str(path))
    return content


def changed(path: Path) -> int:
    """The time of the file's last change, in nanoseconds. Raises OSError where there is no such file."""
    try:
        return path.stat().st_mtime_ns
    except ValueError as error:
        raise _no_name(path, error) from None


def _no_name(path: Path | Traversable, error: ValueError) -> OSError:
    """The error for a name that no file can have, such as a name with a zero byte."""
    return OSError(errno.EINVAL, str(error), str(path))


def check_writable(path: Path) -> None:
    """Raises InputError where `replaced` could not write `path`; called before long work."""
    descriptor, name = _part(path)
    os.close(descriptor)
    os.unlink(name)


def _unwritable(path: Path, reason: str) -> InputError:
    return InputError.of("output file", str(path), f"cannot be written ({reason})", "name a file in a folder of yours")


def _part(path: Path) -> tuple[int, str]:
    """A new file beside `path`, open for writing, and its name. Only an attempt tells whether a folder takes files."""
    try:
        if path.is_dir():
            raise _unwritable(path, "it is a folder")
        if path.exists() and not path.is_file():
            raise _unwritable(path, "it is a device or a pipe")
        if not path.parent.is_dir():
            raise _unwritable(path, "its folder does not exist")
        if path.exists() and not os.access(path, os.W_OK):
            raise _unwritable(path, "it is not yours to write to")
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except InputError:
        raise
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None
    except ValueError as error:  # a name with a zero byte
        raise _unwritable(path, str(error)) from None


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` when the block ends without an error, and is removed otherwise.

    Raises InputError where `path` is a folder or a device, where its folder does not exist or is not writable, or where
    the disk is full.
    """
    descriptor, name = _part(path)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
            raise _unwritable(path, os.strerror(error.errno)) from None
        raise


def make_folder(path: Path, asked: str) -> None:
    """Makes the folder, and those it is in. Raises InputError about `asked` where it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"cannot be made ({error.strerror})"
        raise InputError.of(asked, str(path), rule, "name a folder of yours") from None


def write_text(path: Path, text: str) -> None:
    """Replaces `path` by `text` in UTF-8."""
    with replaced(path) as stream:
        stream.write(text.encode("utf-8"))


def printable(name: str) -> str:
    """A file's name as printable text; other bytes and characters are escaped.

    >>> printable("ada"), printable(os.fsdecode(b"J\\xf6rg"))
    ('ada', 'J\\\\xf6rg')
    """
    text = os.fsencode(name).decode("utf-8", errors="backslashreplace")
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
