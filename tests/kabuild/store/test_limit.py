"""Who says how large the store may become."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError, KabuildError, LoadError, Position, Reason
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


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("# cahce\n[cahce]\n", 2, "unknown table 'cahce'", "did you mean 'cache'?"),
        ('[cache]\n\nsise = "1G"', 3, "unknown key 'sise' in [cache]", "did you mean 'size'?"),
        ('cache = { size = "1G", x = 1 }', 1, "unknown key 'x' in [cache]", "known: size"),
        ("[editor]\n", 1, "unknown table 'editor'", "known: cache"),
        ("\n[cache]\nsize = [1]\n", 3, "[cache] size", ""),
        ("\n\ncache = 3\n", 3, "'cache' must be a table", ""),
        ("[cache]\nsize = [\n\n", 2, "not TOML: invalid value", ""),
    ],
)
def test_what_is_unknown_or_wrong_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, message: str, hint: str
) -> None:
    with pytest.raises(LoadError) as caught:
        size_limit(None, write(tmp_path, text))

    file = str(tmp_path / ".config/kabuild/config.toml")
    assert caught.value.position == Position(file, line)
    assert message in caught.value.message
    assert caught.value.hint == hint


def test_a_byte_that_is_no_text_is_named_with_its_line(tmp_path: Path) -> None:
    user = write(tmp_path, "")
    (tmp_path / ".config/kabuild/config.toml").write_bytes(b"[cache]\nsize = '\xff'\n")

    with pytest.raises(LoadError, match="byte 0xff is not UTF-8") as caught:
        size_limit(None, user)

    assert caught.value.position is not None
    assert caught.value.position.line == 2


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


def test_a_machine_that_opens_no_file_is_no_bad_file(tmp_path: Path) -> None:
    user = write(tmp_path, '[cache]\nsize = "2G"\n')
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(InfraError, match=r"config\.toml cannot be read: Too many open files"):
            size_limit(None, user)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(
        KabuildError, match="KABUILD_CACHE_SIZE: 'lots' is not a valid size"
    ) as caught:
        size_limit(None, {"KABUILD_CACHE_SIZE": "lots"})

    assert caught.value.reason is Reason.BAD_FLAG
