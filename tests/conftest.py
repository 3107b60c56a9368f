"""What all tests share: where the tools that run inside sandboxes import from.

In a sandbox each tool's directory is the first of its path. Here they follow one another; no
two have a module of the same name. ``kabuild/sandbox`` is last: only its three self-contained
modules are found there, as in the input root of a gate. No test fails for being slow.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.testkit import settled
from tests.testkit.kept import USER_DATA

ROOT = Path(__file__).parents[1]
TOOLS = (
    "rules/harness/tools",
    "rules/triton2triton/tools",
    "rules/agent/tools",
    "rules/agent/tools/client",
    "toolchains/agents",
    "toolchains/agents/evolve",
    "toolchains/hip/driver",
    "toolchains/hip/cpu/driver",
    "toolchains/hip/cuda/driver",
    "toolchains/hip/rocm/driver",
    "toolchains/platforms/cuda/tools",
    "toolchains/platforms/rocm/tools",
    "toolchains/hip/host",
    "toolchains/hip/common",
    "tests/rules/harness",
    "tests/device",
)

sys.path[:0] = [str(ROOT / path) for path in TOOLS]
sys.path.append(str(ROOT / "kabuild" / "sandbox"))

# One key for all processes of all test runs of a user: they share stores, and leave the user's own
# key alone.
os.environ["XDG_DATA_HOME"] = str(USER_DATA)

# As gates compute. Several threads of torch would wait for each other by spinning, and take ten
# times as long where others want the processors.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("kabuild", deadline=None)
settings.load_profile("kabuild")


_LEFT_OUT = pytest.StashKey[bool]()
_NOT_IN_TURN = pytest.StashKey[bool]()


def _module(item: pytest.Item) -> str:
    return os.path.relpath(item.path, ROOT)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the modules of settled parts that are not in turn."""
    waiting = settled.not_in_turn()
    if left := [item for item in items if _module(item) in waiting]:
        config.stash[_NOT_IN_TURN] = True
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if _module(item) not in waiting]


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember that the modules do not run as a whole."""
    items[0].config.stash[_LEFT_OUT] = True


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Record the settled parts of a run that passed, if it was told to and left nothing out.

    A run of which no module is in turn has nothing to do, which is no failure.
    """
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and _NOT_IN_TURN in session.config.stash:
        session.exitstatus = pytest.ExitCode.OK
    one_test = any("::" in argument for argument in session.config.args)
    whole = not one_test and _LEFT_OUT not in session.config.stash
    if settled.accepts() and whole and exitstatus == pytest.ExitCode.OK:
        settled.record_passed({_module(item) for item in session.items})


def pytest_collection_finish() -> None:
    """Spare the garbage collector what all modules have made: it stays until the end."""
    gc.collect()
    gc.freeze()
