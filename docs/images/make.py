"""Makes the pictures of the documentation from real runs, in a copy of the repository.

    python docs/images/make.py [--chromium PROGRAM]

Writes session.svg (a recorded terminal session), incremental.svg with its figures in
incremental.json, and report.png. It judges all tasks once from an empty store, so it takes minutes;
run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STARTER = ("test", "//tasks/...", "--test_tag_filters=starter")
BUNDLES = [ROOT / "results" / "cpu" / f"{agent}.kab" for agent in ("expert", "tuner")]
COPIED = ("WORKSPACE.toml", "tasks", "toolchains", "rules")
KERNEL = "tasks/hip2hip/softmax/solutions/expert/softmax.hip"
BROKEN = """\
#include <hip/hip_runtime.h>
__global__ void softmax(const float* x, float* y) {
  y[0] = nope;
}
"""
COLUMNS = 112
FONT = 'font-family="system-ui, sans-serif" font-size="15" fill="#57606a"'
BAR, ROW, LEFT, WIDTH = 20, 34, 250, 760


class Workspace:
    """A copy of the repository's workspace, with an empty store."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "kabuild"
        self.root.mkdir()
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, self.root / name)
        (self.root / "bad.hip").write_text(BROKEN)
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "KABUILD_CACHE": str(directory / "store"),
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
        }

    def run(self, *arguments: str) -> tuple[str, float]:
        """What kabuild prints to a terminal, and the seconds that it took."""
        primary, replica = pty.openpty()
        began = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "kabuild", *arguments],
            cwd=self.root,
            env=self._environment,
            stdout=replica,
            stderr=subprocess.DEVNULL,
        ):
            os.close(replica)
            said = b""
            while part := _read(primary):
                said += part
        os.close(primary)
        return said.decode().replace("\r\n", "\n"), time.monotonic() - began

    def edit(self, line: str) -> None:
        """Put a line before all others of one expert's kernel."""
        kernel = self.root / KERNEL
        kernel.write_text(f"{line}\n{kernel.read_text()}")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # what a terminal says at its end
        return b""


def session(workspace: Workspace) -> str:
    """An SVG of three commands and what they print."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
    for arguments in (
        ("test", "//tasks/hip2hip/...", "--test_tag_filters=starter"),
        ("test", "//tasks/hip2hip/softmax", "--solution=bad.hip"),
    ):
        console.print(Text(f"$ kabuild {' '.join(arguments)}", style="bold"))
        console.print(Text.from_ansi(workspace.run(*arguments)[0]))
    # A picture in a page loads no font, and needs none.
    return re.sub(
        r"@font-face \{.*?\}\s*", "", console.export_svg(title="kabuild"), flags=re.DOTALL
    )


def incremental(workspace: Workspace) -> dict[str, float]:
    """Seconds to judge the starter tasks after less and less has changed."""
    found = {"from an empty store": workspace.run(*STARTER)[1]}
    workspace.edit('extern "C" int edited() { return 1; }')
    found["one kernel changed"] = workspace.run(*STARTER)[1]
    workspace.edit("// a comment")
    found["a comment changed"] = workspace.run(*STARTER)[1]
    found["nothing changed"] = workspace.run(*STARTER)[1]
    return found


def bars(figures: dict[str, float]) -> str:
    """An SVG with a bar for each figure, in seconds."""
    largest = max(figures.values())
    height = ROW * len(figures) + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        '<text x="0" y="18" font-weight="600">Seconds to judge all tasks again</text>',
    ]
    for index, (name, seconds) in enumerate(figures.items()):
        top = 36 + index * ROW
        width = max(2.0, (WIDTH - LEFT - 80) * seconds / largest)
        parts += [
            f'<text x="0" y="{top + 15}">{name}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR}" fill="#2da44e"/>',
            f'<text x="{LEFT + width + 8:.1f}" y="{top + 15}">{seconds:.3g} s</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


def picture(workspace: Workspace, chromium: str) -> None:
    """The first screen of the report of two agents, as published."""
    page = workspace.root / "report.html"
    workspace.run("report", *map(str, BUNDLES), f"-o{page}")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--hide-scrollbars"]
    command += [f"--user-data-dir={workspace.root / 'profile'}", "--window-size=1200,900"]
    command += [f"--screenshot={HERE / 'report.png'}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def main(arguments: Sequence[str]) -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory))
        figures = incremental(workspace)
        (HERE / "incremental.json").write_text(json.dumps(figures, indent=1) + "\n")
        (HERE / "incremental.svg").write_text(bars(figures))
        (HERE / "session.svg").write_text(session(workspace))
        if options.chromium:
            picture(workspace, options.chromium)


if __name__ == "__main__":
    main(sys.argv[1:])
