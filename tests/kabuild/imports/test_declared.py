"""A repository is declared in memory first; WORKSPACE.toml changes when that is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.base.errors import UsageError
from kabuild.imports.checkout import declare_repository
from kabuild.loading import load_workspace

BEFORE = 'name = "mine"\r\n# without a line feed'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "bench").mkdir()
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/WORKSPACE.toml").write_bytes(BEFORE.encode())
    return tmp_path / "ws"


def test_nothing_is_written_before_the_lock_is(root: Path) -> None:
    declared = declare_repository(root, "kb", "kernelbench", root / "../bench")

    assert (root / "WORKSPACE.toml").read_bytes() == BEFORE.encode()
    assert declared.workspace.repositories == {"kb": declared.repository}
    assert str(declared.repository.position) == "WORKSPACE.toml:4"

    declared.write()

    text = (root / "WORKSPACE.toml").read_bytes().decode()
    assert text.startswith(f"{BEFORE}\n\n[[repository]]\n")
    assert load_workspace(root).repositories == declared.workspace.repositories


def test_what_was_declared_meanwhile_is_kept(root: Path) -> None:
    """Of two imports at once, and of an editor's changes while one runs."""
    first, second = (
        declare_repository(root, "kb", "kernelbench", root / "../bench") for _ in range(2)
    )
    first.write()
    with (root / "WORKSPACE.toml").open("a") as file:
        file.write("[cache]\nsize = '1G'\n")

    second.write()

    assert (root / "WORKSPACE.toml").read_text().count("[[repository]]") == 1
    assert load_workspace(root).cache_size


def test_a_name_of_another_checkout_is_taken(root: Path) -> None:
    declare_repository(root, "kb", "kernelbench", root / "../bench").write()

    assert not declare_repository(root, "kb", "kernelbench", root / "../bench").stanza
    for adapter, path in (("gpu_mode", root / "../bench"), ("kernelbench", root)):
        with pytest.raises(UsageError, match=r"WORKSPACE\.toml:4: '@kb' is already kernelbench at"):
            declare_repository(root, "kb", adapter, path)
