"""The C compiler of the tests: that of the ziglang wheel.

Before it links its first program or library, it builds parts of the C library. They are kept
between test runs. The library of the undefined behaviour sanitizer would take 20 s more, so the
sanitizer is off.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.testkit.kept import ROOT

_COMMAND = (sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined")


def run_cc(*arguments: str) -> None:
    """Run ``cc``; it must succeed."""
    done = subprocess.run(
        [*_COMMAND, *arguments],
        env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(ROOT / "zig")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def compile_library(path: Path, sources: Sequence[str], *flags: str) -> Path:
    """A shared library at ``path``, made of C sources."""
    run_cc("-O1", "-fPIC", "-shared", *flags, *sources, "-o", str(path))
    return path
