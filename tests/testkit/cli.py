"""The real ``kabuild`` program in a workspace of a test's own."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.testkit.warm import warm

REPOSITORY = Path(__file__).parents[2]
_PROGRESS = re.compile(r"^\[\d+/\d+\] \w+ (//\S+)", re.MULTILINE)
PROGRAM = (sys.executable, "-m", "kabuild")


@dataclass(frozen=True)
class Ran:
    """How one call of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed with --json."""
        assert self.out, self.err
        return json.loads(self.out)

    @property
    def executed(self) -> set[str]:
        """The labels of the actions that ran, from its progress on stderr."""
        return set(_PROGRESS.findall(self.err))

    def gate(self, gate: str) -> dict[str, Any]:
        """The entry of one gate, where one task was tested."""
        (entry,) = [item for item in self.json["targets"] if item["gate"] == gate]
        assert isinstance(entry, dict)
        return entry


def copy_store(store: Path, target: Path) -> None:
    """A store with the same content; blobs are shared by hard links, as they never change."""
    shutil.copytree(store / "cas", target / "cas", copy_function=_share)
    shutil.copytree(store / "ac", target / "ac")


def _share(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copy2(source, target)


@dataclass(frozen=True)
class CliWorkspace:
    """A workspace directory, and a store that nobody else uses."""

    root: Path
    store: Path
    env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, directory: Path, store: Path | None = None) -> CliWorkspace:
        """An empty workspace below ``directory``."""
        root = directory / "workspace"
        root.mkdir()
        (root / "WORKSPACE.toml").write_text('name = "test"\n')
        return cls(root, store or directory / "store")

    def write(self, path: str, text: str) -> Path:
        """Write one file of the workspace."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def adopt(self, task: str) -> Path:
        """Copy one task of the repository, such as ``tasks/hip2hip/softmax``."""
        shutil.copytree(REPOSITORY / task, self.root / task)
        return self.root / task

    def copy(self, directory: Path) -> CliWorkspace:
        """The same workspace at another place, with a store of its own that has the same."""
        copy = CliWorkspace(directory / "workspace", directory / "store", self.env)
        shutil.copytree(self.root, copy.root)
        copy_store(self.store, copy.store)
        return copy

    def command(self, *arguments: str) -> list[str]:
        """The argv of one call."""
        return [*PROGRAM, *arguments]

    def environment(self) -> dict[str, str]:
        """The environment of one call, without the size of the terminal that runs the tests."""
        own = {name: os.environ[name] for name in os.environ if name not in ("COLUMNS", "LINES")}
        return {**own, "KABUILD_CACHE": str(self.store), "NO_COLOR": "1", **self.env}

    def run(self, *arguments: str, cwd: str = ".", timeout: float = 300.0) -> Ran:
        """Call the program and wait for it; in a process that was warm, unless it cannot be."""
        environment = self.environment()
        if warm().serves(environment):
            return Ran(*warm().run(arguments, self.root / cwd, environment, timeout))
        return self.start(*arguments, cwd=cwd, timeout=timeout)

    def start(self, *arguments: str, cwd: str = ".", timeout: float = 300.0) -> Ran:
        """Start the program and wait for it."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.root / cwd,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)
