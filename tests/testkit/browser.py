"""A real browser without a window."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs chromium: apt install chromium")


def browse(page: Path, *options: str) -> str:
    """Open a page, let its script run, and give the document as it is then."""
    assert BROWSER
    done = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *(f"--user-data-dir={page.parent / 'profile'}", "--enable-logging=stderr", "--v=0"),
            *(*options, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    refused = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not refused, refused
    return done.stdout


def paint(page: Path, picture: Path) -> None:
    """Open a page and paint its first screen."""
    assert BROWSER
    subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *(f"--user-data-dir={page.parent / 'profile'}", "--window-size=1200,900"),
            *(f"--screenshot={picture}", page.as_uri()),
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
