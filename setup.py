"""The build's one step that pyproject.toml cannot name: the wheel gets the course's material."""

import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
MATERIAL = runpy.run_path(str(ROOT / "distsim" / "material.py"))


class BuildWithMaterial(build_py):
    """Copies the material into the package. An editable installation reads the repository instead."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        place = Path(self.build_lib) / "distsim" / MATERIAL["SHIPPED"]
        shutil.rmtree(place, ignore_errors=True)  # files of an earlier build, which may be gone from the repository
        for file in MATERIAL["files"](ROOT):
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, place / file)


setup(cmdclass={"build_py": BuildWithMaterial})
