"""Made-up installations of Python distributions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Install = Callable[..., Path]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with nothing but its own site directory on the import path."""
    prefix = tmp_path / "env"
    path = prefix / "lib" / "site-packages"
    path.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(path)])
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "base"))
    return path


@pytest.fixture
def install(site: Path) -> Install:
    """Install a distribution: ``install("torch", "2.0", requires=["numpy>=1"])``."""

    def run(
        name: str,
        version: str = "1.0",
        *,
        requires: tuple[str, ...] = (),
        record: str | None = "code.py,sha256=abc,3\n",
        at: Path = site,
    ) -> Path:
        stem = name.replace("-", "_")
        (at / stem).mkdir(parents=True, exist_ok=True)
        info = at / f"{stem}-{version}.dist-info"
        info.mkdir()
        headers = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
        (info / "METADATA").write_text(
            f"Name: {name}\nVersion: {version}\n{headers}\nText.\nRequires-Dist: not-a-header\n"
        )
        if record is not None:
            (info / "RECORD").write_text(record)
        return info

    return run
