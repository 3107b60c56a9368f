"""Programs in a process that has a launch filter before its driver."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from tests.testkit.forks import Forks

ROOT = Path(__file__).parents[3]
SETTING = """
import ctypes
from pathlib import Path
from base.program import RunnerPolicy
from runners.launch_pages import EVERY, Kind, LaunchPages

own = lambda: LaunchPages(RunnerPolicy(own_kernels=True))
code = lambda of: Path(PLACE, of, "kernel.py.code").read_bytes()

def image(library, name):
    loaded = ctypes.CDLL(str(PLACE / library))
    it.kept.append(loaded)
    return ctypes.addressof(ctypes.c_char.in_dll(loaded, name))
"""

Run = Callable[[str], str]


def filtered_forks() -> Forks:
    """Processes that have PyTorch imported."""
    paths = f"{ROOT}:{ROOT / 'rules/harness/tools'}:{ROOT / 'kabuild/sandbox'}"
    return Forks("runners.launch_pages", env={"PYTHONPATH": paths, "LD_LIBRARY_PATH": ""})


def runs_in(forks: Forks, place: Path, setting: str) -> Run:
    """A function that runs a program in a process of its own, and returns what it prints.

    The program finds ``PLACE``, ``own``, ``code``, ``image``, and what ``setting`` defines, which
    has to be ``it``, the process as the filter sees it, at least.
    """
    first = f"import pathlib; PLACE = pathlib.Path({str(place)!r})"

    def run(program: str) -> str:
        parts = map(textwrap.dedent, (SETTING, setting, program))
        done = forks.run("\n".join([first, *parts]))
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
