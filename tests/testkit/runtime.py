"""The HIP runtime in a store, made once for all test runs of a user.

The first process that needs it makes it. It is looked up by content, like all that is cached:
with other sources or another compiler it is made again.
"""

from __future__ import annotations

import shutil

from tests.testkit.cli import CliWorkspace
from tests.testkit.kept import kept_alone


def add_runtime(workspace: CliWorkspace) -> None:
    """Give a workspace whose store is empty the runtime and the native runner.

    The workspace gets copies: whatever is done to its store does not touch the kept one.
    """
    with kept_alone("runtime") as directory:
        maker = CliWorkspace(directory / "workspace", directory / "store")
        maker.write("WORKSPACE.toml", 'name = "runtime"\n')
        made = maker.run("build", "//toolchains/hip:cpu")
        assert made.code == 0, made.err
        for part in ("cas", "ac"):
            shutil.copytree(maker.store / part, workspace.store / part)
