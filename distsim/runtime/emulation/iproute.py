"""The programs `ip` and `tc`, which configure the kernel's network, and the errors for refused commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from distsim.errors import InputError

SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")  # of `ip` and `tc`, which are not on every user's PATH
NOT_PERMITTED = "not permitted"
RIGHTS_CURE = (
    "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu also "
    "kernel.apparmor_restrict_unprivileged_userns=0; a container must be privileged), or leave --emulate out"
)
KERNEL_CURE = "use a kernel with veth, bridge, sch_htb and cls_u32, or leave --emulate out"


def refusal(reason: str, cure: str = RIGHTS_CURE) -> InputError:
    """The error for a machine that cannot emulate a cluster."""
    return InputError.of("--emulate", True, reason, cure)


@dataclass(frozen=True)
class Iproute:
    """Runs both programs in the network namespace of this process."""

    ip_path: str
    tc_path: str

    @classmethod
    def found(cls) -> Iproute:
        """Raises InputError where this is not Linux, or a program is missing."""
        if sys.platform != "linux":
            raise refusal(f"needs Linux's network namespaces, and this is {sys.platform}", "use a Linux machine")
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
        programs = {name: shutil.which(name, path=path) for name in ("ip", "tc")}
        if missing := [name for name, program in programs.items() if program is None]:
            raise refusal(f"needs the program {missing[0]}, which is not installed", "install the package iproute2")
        return cls(str(programs["ip"]), str(programs["tc"]))

    def ip(self, *commands: str) -> None:
        """Carries out commands of `ip`. Raises InputError with its message where a command fails."""
        self._carry_out(self.ip_path, commands)

    def tc(self, *commands: str) -> None:
        """Carries out commands of `tc`. Raises InputError with its message where a command fails."""
        self._carry_out(self.tc_path, commands)

    def kernel_delays(self) -> bool:
        """Whether the kernel has `netem`, which adds latency. Tries it on this namespace's loopback."""
        tried = _run(self.tc_path, ["qdisc add dev lo root netem delay 1us"])
        if tried.returncode == 0:
            self.tc("qdisc del dev lo root")
        return tried.returncode == 0

    @staticmethod
    def _carry_out(program: str, commands: tuple[str, ...]) -> None:
        done = _run(program, commands)
        if done.returncode != 0:
            name = os.path.basename(program)
            said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            cure = RIGHTS_CURE if NOT_PERMITTED in said else KERNEL_CURE
            raise refusal(f"needs network namespaces and a traffic shaper in them, but {name} said: {said}", cure)


def _run(program: str, commands: tuple[str, ...] | list[str]) -> subprocess.CompletedProcess[str]:
    text = "".join(f"{command}\n" for command in commands)
    return subprocess.run([program, "-batch", "-"], input=text, capture_output=True, text=True, check=False)
