"""Who says how large the store may become."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.base.errors import KabuildError, Reason
from kabuild.store.limit import DEFAULT, size_limit


def write(home: Path, text: str) -> dict[str, str]:
    """The user's file; the environment that leads to it."""
    file = home / ".config" / "kabuild" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return {"HOME": str(home)}


def test_the_first_who_says_something_counts(tmp_path: Path) -> None:
    nobody = {"HOME": str(tmp_path / "nobody")}
    user = write(tmp_path, '[cache]\nsize = "2G"\n')

    assert size_limit(None, nobody).bytes == DEFAULT
    assert size_limit(3 << 30, nobody).bytes == 3 << 30
    assert size_limit(3 << 30, user).bytes == 2 << 30
    assert size_limit(3 << 30, {**user, "KABUILD_CACHE_SIZE": "1G"}).bytes == 1 << 30
    assert size_limit(None, user).source.endswith("config.toml")


def test_a_number_of_bytes_will_do(tmp_path: Path) -> None:
    assert size_limit(None, write(tmp_path, "[cache]\nsize = 5\n")).bytes == 5


def test_other_settings_are_none_of_its_business(tmp_path: Path) -> None:
    assert size_limit(None, write(tmp_path, "[editor]\n")).bytes == DEFAULT


def test_the_xdg_directory_is_honoured(tmp_path: Path) -> None:
    write(tmp_path, '[cache]\nsize = "2G"\n')

    assert size_limit(None, {"XDG_CONFIG_HOME": str(tmp_path / ".config")}).bytes == 2 << 30


@pytest.mark.parametrize(
    "text", ["[cache\n", "cache = 3\n", '[cache]\nsize = "huge"\n', "[cache]\nsize = -1\n"]
)
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(KabuildError) as caught:
        size_limit(None, write(tmp_path, text))

    assert caught.value.position is not None
    assert caught.value.position.file.endswith("config.toml")


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(KabuildError, match="KABUILD_CACHE_SIZE: 'lots' is no size") as caught:
        size_limit(None, {"KABUILD_CACHE_SIZE": "lots"})

    assert caught.value.reason is Reason.BAD_FLAG
