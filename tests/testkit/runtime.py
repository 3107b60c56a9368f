"""The HIP runtime in a store, made once for all processes that test on this machine.

Who needs it first makes it. What others made is looked up by content, like all that is cached:
where a source or the compiler is another, it is made again.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from pathlib import Path

from tests.testkit.cli import REPOSITORY, CliWorkspace


def add_runtime(workspace: CliWorkspace, shared: Path) -> None:
    """Give a workspace whose store is empty the runtime and the native runner.

    The common store lies in ``shared``, which outlives the test; whatever is done to the
    workspace's own does not touch it.
    """
    code = hashlib.sha256()
    for file in sorted((REPOSITORY / "kabuild/store").glob("*.py")):
        code.update(file.read_bytes())  # which says what a store looks like
    directory = shared / f"kabuild-runtime-{code.hexdigest()[:16]}"
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        maker = CliWorkspace(directory / "workspace", directory / "store")
        maker.write("WORKSPACE.toml", 'name = "runtime"\n')
        made = maker.run("build", "//toolchains/hip:cpu")
        assert made.code == 0, made.err
        for part in ("cas", "ac"):
            shutil.copytree(maker.store / part, workspace.store / part)
