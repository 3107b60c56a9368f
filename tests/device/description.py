"""What this machine is, so that figures measured on it mean something elsewhere."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_QUERY = (
    "name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.max.memory,mig.mode.current"
)


def describe() -> dict[str, Any]:
    """Devices, processors and versions; empty texts for what is not there."""
    devices = _said("nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader")
    return {
        "devices": [
            dict(zip(_QUERY.split(","), line.split(", "), strict=False)) for line in devices
        ],
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in ("torch", "triton", "numpy", "ziglang")},
        "nvcc": "".join(_said("nvcc", "--version")[-2:]),
        "g++": "".join(_said("g++", "--version")[:1]),
        "revision": revision(),
    }


def revision(root: Path = ROOT) -> str:
    """Which commit the tree at ``root`` is: as ``$REVISION``, its file REVISION, or git says.

    A plain archive has the first or the second only. Empty where nobody says.
    """
    told, file = os.environ.get("REVISION", ""), root / "REVISION"
    if not told and file.is_file():
        told = file.read_text()
    if not told and (root / ".git").exists():
        told = "".join(_said("git", "-C", str(root), "rev-parse", "HEAD"))
    return told.strip()


def _said(*command: str) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
