"""Checks of this machine: each tells what it found and, where something is missing, the cure."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from distsim.extras import installed, pip_install
from distsim.runtime.emulation.iproute import SYSTEM_FOLDERS

LEAST_PYTHON = (3, 11)
PROBE_SECONDS = 60.0


@dataclass(frozen=True)
class Check:
    """One line of the report. needed_for: what fails without it. cure: empty where all is well."""

    name: str
    ok: bool
    found: str
    needed_for: str
    cure: str = ""


def examine() -> list[Check]:
    """All checks, in the order in which a newcomer needs them. Nothing on the machine is changed."""
    return [
        _python(),
        _cores(),
        _memory(),
        *(_package(name, "figures and explorers") for name in ("plotly", "ipywidgets")),
        *(_package(name, "notebooks, explorers as pages") for name in ("jupyterlab", "voila")),
        *(_package(name, "notebooks under test") for name in ("pandas", "nbval")),
        _package("torch", "real runs"),
        _gloo(),
        _gpu(),
        _program("chromium", "pictures, browser tests", "install Debian's package chromium, or any Chromium"),
        *(_program(name, "the emulated cluster", "install the package iproute2") for name in ("ip", "tc")),
        _namespaces(),
    ]


def _check(name: str, ok: bool, found: str, needed_for: str, cure: str) -> Check:
    """A check with its cure only where it is not ok."""
    return Check(name, ok, found, needed_for, "" if ok else cure)


def _python() -> Check:
    version = platform.python_version()
    ok = sys.version_info >= LEAST_PYTHON
    return _check("python", ok, version, "everything", f"install Python {'.'.join(map(str, LEAST_PYTHON))} or newer")


def _cores() -> Check:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cure = "ranks will share one core: keep compute times at 50 ms or more"
    return _check("cores", usable >= 2, f"{usable} usable", "steady real runs", cure)


def _memory() -> Check:
    gib = psutil.virtual_memory().available / 2**30
    return _check("memory", gib >= 2, f"{gib:.1f} GiB free", "real runs (about 0.3 GiB per rank)", "close programs")


def _package(name: str, needed_for: str) -> Check:
    try:
        return Check(name, True, importlib.metadata.version(name), needed_for)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, "not installed", needed_for, pip_install(name))


def _gloo() -> Check:
    """Asks torch in another process, because importing torch takes seconds and memory."""
    if not installed("torch"):
        return Check("gloo", False, "torch is missing", "real runs on CPUs", pip_install("torch"))
    code = "import torch.distributed as d; print(d.is_available() and d.is_gloo_available())"
    ok, said = _python_says(code)
    available = said == "True"
    cure = "install a torch built with distributed support" if ok else said
    return _check("gloo", available, "available" if available else said, "real runs on CPUs", cure)


def _gpu() -> Check:
    """Always ok: no run needs a GPU."""
    if not installed("torch"):
        return Check("gpu", True, "unknown without torch", "nothing: labs run on CPUs")
    code = (
        "import json, torch, torch.distributed as d; "
        "names = [torch.cuda.get_device_name(gpu) for gpu in range(torch.cuda.device_count())]; "
        "print(json.dumps([names, d.is_available() and d.is_nccl_available()]))"
    )
    ok, said = _python_says(code)
    if not ok:
        return Check("gpu", True, said, "nothing: labs run on CPUs")
    names, nccl = json.loads(said)
    return gpu_check(names, nccl=nccl)


def gpu_check(names: Sequence[str], *, nccl: bool) -> Check:
    """The check of the GPUs that torch can use. names: one for each GPU. nccl: whether torch has NCCL.

    >>> gpu_check(["H100", "H100"], nccl=True).needed_for
    'runs of up to 2 ranks without servers'
    """
    found = f"{', '.join(names)}, with{'' if nccl else 'out'} NCCL" if names else "none"
    use = f"runs of up to {len(names)} rank{'s' if len(names) > 1 else ''} without servers"
    return Check("gpu", True, found, use if names and nccl else "nothing: labs run on CPUs")


def _python_says(code: str) -> tuple[bool, str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
    )
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else "no answer"


def _program(name: str, needed_for: str, cure: str) -> Check:
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS]))
    return _check(name, path is not None, "found" if path else "not on the PATH", needed_for, cure)


def _namespaces() -> Check:
    """Starts a process in a new network namespace; without root, inside a new user namespace."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return Check("namespaces", False, "no unshare", "the emulated cluster", "use Linux with util-linux")
    options = ["-nm"] if os.geteuid() == 0 else ["-Urnm"]
    done = subprocess.run(
        [unshare, *options, "true"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
    )
    ok = done.returncode == 0
    cure = "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
    found = ("as root" if os.geteuid() == 0 else "rootless") if ok else done.stderr.strip()
    return _check("namespaces", ok, found, "the emulated cluster", cure)
