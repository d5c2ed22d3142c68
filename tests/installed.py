"""The package as a user gets it: wheel and sdist of the repository's files, installed outside the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.pages import ROOT

SECONDS = 300.0


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, built as `make dist` does, from a copy of the files that git knows or would know."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "source" / name)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(folder / "source")]
    done = subprocess.run(build, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@dataclass(frozen=True)
class Environment:
    """A virtual environment. folder: holds it, and nothing of the repository."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Environment:
        venv.create(folder, symlinks=True, with_pip=False)
        return cls(folder)

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def install(self, *what: str | Path, shelf: Path) -> None:
        """By pip, from files in the folder `shelf` alone."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.program("python")), "install", "--quiet", "--no-index"]
        command = [*pip, "--find-links", str(shelf), *map(str, what)]
        subprocess.run(command, env=variables(), timeout=SECONDS, check=True)

    def borrow_packages(self) -> None:
        """Lets it import all that the tests' own environment has, but distsim, which is installed editable there."""
        (self.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for name in ("share/jupyter", "etc"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).symlink_to(Path(sys.prefix) / name)

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def run(self, *words: str | Path, folder: Path, code: int = 0, name: str = "distsim") -> str:
        """What a command prints, stderr included. Its exit code must be `code`."""
        done = subprocess.run(
            [self.program(name), *map(str, words)], cwd=folder, env=variables(), text=True, timeout=SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        assert done.returncode == code, (words, done.returncode, done.stdout)
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def megabytes(self) -> float:
        """The size of all files, without those that are links."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if not path.is_symlink()) / 1e6


def variables() -> dict[str, str]:
    """The environment's variables without those that lead to the repository or to other packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "VIRTUAL_ENV"))}


def shelve(wheel: Path, shelf: Path) -> None:
    """Puts the wheel, and the wheels of what it requires without an extra, into the folder `shelf`."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", str(shelf)]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], timeout=SECONDS, check=True)
