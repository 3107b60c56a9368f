"""HIP's compiler drivers as commands, each call in a fork of a process that has imported them.

To start an interpreter and to import them would take longer than to compile most of what tests do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import get_ident

from tests.testkit.forks import Forks

_HIP = Path(__file__).parents[2] / "toolchains" / "hip"
_DIRECTORIES = ("driver", "common", "host", "cpu/driver", "cuda/driver", "rocm/driver")
_MODULES = ("runpy", "compile_hip", "native", "cpu_platform", "cuda_platform", "rocm_platform")


def run_driver(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What comes of ``[sys.executable, SCRIPT, …]``, a script of ``toolchains/hip``."""
    assert command[0] == sys.executable
    script, argv = command[1], list(command[1:])
    return _forks(get_ident()).run(
        f"import runpy, sys; sys.argv = {argv!r}; runpy.run_path({script!r}, run_name='__main__')"
    )


@cache
def _forks(_thread: int) -> Forks:
    """The first process, one for each thread that asks; it ends with this one."""
    path = os.pathsep.join(str(_HIP / name) for name in _DIRECTORIES)
    return Forks(*_MODULES, env={**os.environ, "PYTHONPATH": path})
