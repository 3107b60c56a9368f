"""The HIP runtime in a store, made once for all test runs of a user.

The first process that needs it makes it. It is looked up by content, like all that is cached:
with other sources or another compiler it is made again.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.testkit.cli import CliWorkspace
from tests.testkit.kept import kept_alone, kept_store

RUNTIME = "libhipcpu.so"
_PARTS = ("cas", "ac")


def add_runtime(workspace: CliWorkspace) -> None:
    """Give a workspace whose store is empty the runtime and the native runner.

    The workspace gets copies: whatever is done to its store does not touch the kept one.
    """
    with _made() as store:
        for part in _PARTS:
            shutil.copytree(store / part, workspace.store / part)


def judged_store() -> Path:
    """The kept store of verdicts, which has the runtime; other builds may be using it."""
    judged = kept_store("judged")
    link_runtime(judged)
    return judged


def link_runtime(target: Path) -> None:
    """Give a kept store the runtime, whose blobs it shares; builds may be using it."""
    with _made() as store:
        for file in (file for part in _PARTS for file in (store / part).rglob("*")):
            if file.is_file():
                link = target / file.relative_to(store)
                link.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.link(file, link)


def copy_built(directory: Path) -> Path:
    """Copy the built ``libhipcpu.so`` and ``hip-runner`` to a directory; returns the former."""
    with _built() as maker:
        made = maker.root / "out/toolchains/hip"
        for part, name in (("runtime", RUNTIME), ("runner", "hip-runner")):
            shutil.copy(made / f"cpu.{part}" / name, directory / name)
    return directory / RUNTIME


@cache
def load_built() -> Path:
    """Load the built ``libhipcpu.so`` into this process, as a runner does; returns it.

    Once for all tests of the process: kernels use the copy that was loaded first, and a second one
    would have a state of its own.
    """
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    library = copy_built(Path(directory))
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    return library


@contextlib.contextmanager
def _made() -> Iterator[Path]:
    """The store that has it, and nothing else; for one process at a time."""
    with _built() as maker:
        yield maker.store


@contextlib.contextmanager
def _built() -> Iterator[CliWorkspace]:
    """The workspace that it was built in."""
    with kept_alone("runtime") as directory:
        maker = CliWorkspace(directory / "workspace", directory / "store")
        maker.write("WORKSPACE.toml", 'name = "runtime"\n')
        made = maker.run("build", "//toolchains/hip:cpu")
        assert made.code == 0, made.err
        yield maker
