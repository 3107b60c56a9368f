"""HIP for AMD's processors, compiled as it is in a build, and what comes of it."""

from __future__ import annotations

import json
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import architectures
from device_constants import device_constants

from tests.tasks.chosen import every, first_in_turn, turn
from tests.testkit.compilations import Completed, compile_once
from tests.testkit.hip_drivers import run_driver

ROOT = Path(__file__).resolve().parents[3]
KERNELS = Path(__file__).parent / "kernels"
PLATLIB = Path(sysconfig.get_path("platlib"))
ZIG = PLATLIB / "ziglang"
LIBRARIES = PLATLIB / "triton" / "backends" / "amd"
DRIVER = ROOT / "toolchains" / "hip" / "driver" / "compile_hip.py"

ARCHITECTURES = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
"""The processors that every task must compile for."""

_IN_TURN = tuple(first_in_turn(ARCHITECTURES, len(ARCHITECTURES), turn()))
FIRST_HALF = ARCHITECTURES if every() else _IN_TURN[:2]
"""Some of them, in turn. Of tests that compile for each, one takes these, one takes the others."""

OTHER_HALF = ARCHITECTURES if every() else _IN_TURN[2:]


@dataclass(frozen=True)
class RocmDriver:
    """HIP's driver for AMD's processors, as a command."""

    compiler: str = f"zig:{ZIG}"
    anew: bool = False
    """Whether each compilation is run, though an equal one is kept."""

    def run(self, source: Path, output: Path, arch: str, *arguments: str | Path) -> Completed:
        """Run it as it is run in a build."""
        command = [sys.executable, str(DRIVER), "rocm", "kernel", str(source), "-o", str(output)]
        command += [f"--arch={arch}", f"--compiler={self.compiler}", f"--libraries={LIBRARIES}"]
        command += map(str, arguments)
        if self.anew or self.compiler != f"zig:{ZIG}":
            return run_driver(command)
        return compile_once(command, source, output)

    def build(
        self, source: Path, output: Path, arch: str, *arguments: str | Path
    ) -> list[dict[str, Any]]:
        """Run it; it must succeed. The resources of the kernels, in the order of their names."""
        done = self.run(source, output, arch, *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refuse(self, source: Path, arch: str, *arguments: str | Path) -> str:
        """The message for a source that is wrong; nothing is written."""
        output = source.with_suffix(".so")
        done = self.run(source, output, arch, *arguments)
        assert done.returncode == 1, (done.returncode, done.stderr)
        assert not output.exists()
        return done.stderr


def architecture(name: str) -> architectures.Architecture:
    """A processor by its name."""
    return architectures.ARCHITECTURES[name]


def constants(arch: str) -> str:
    """What AMD's library of device code is told of a processor, as an LLVM module."""
    return device_constants(architecture(arch))
