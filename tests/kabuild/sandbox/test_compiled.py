"""Files that a zygote compiled stand for files with the very same bytes, and for nothing else."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path

import pytest

from kabuild.sandbox.compiled import CompiledFiles
from tests.kabuild.sandbox.boxes import call_in_fork

NAME = "module_of_test_compiled"
SOURCE = b'"""A module."""\n\nWORD = "first"\n\n\ndef say():\n    return WORD\n'
OTHER = SOURCE.replace(b"first", b"other")


def sha256(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / f"{NAME}.py"
    path.write_bytes(SOURCE)
    return path


def compiled(path: Path, digest: str = sha256(SOURCE)) -> CompiledFiles:
    files = CompiledFiles()
    files.add(str(path.parent), str(path.parent), {path.name: digest})
    return files


def test_a_file_is_compiled_once_under_the_path_that_scripts_see(path: Path) -> None:
    files = CompiledFiles()
    digests = {path.name: sha256(SOURCE)}
    assert files.add(str(path.parent), "/exec", digests)
    code = files.code(SOURCE, f"/exec/{path.name}")

    assert code
    assert code.co_filename == f"/exec/{path.name}"
    assert not files.add(str(path.parent), "/exec", digests)
    assert files.code(SOURCE, f"/exec/{path.name}") is code


def test_code_stands_for_the_same_bytes_only(path: Path) -> None:
    files = compiled(path)

    assert files.code(SOURCE, str(path))
    assert files.code(OTHER, str(path)) is None
    assert files.code(SOURCE + b"\n", str(path)) is None
    assert files.code(SOURCE, str(path) + "x") is None


def test_the_version_that_comes_last_is_kept(path: Path) -> None:
    files = compiled(path)
    path.write_bytes(OTHER)
    assert files.add(str(path.parent), str(path.parent), {path.name: sha256(OTHER)})

    assert files.code(OTHER, str(path))
    assert files.code(SOURCE, str(path)) is None


@pytest.mark.parametrize(
    "source",
    [
        b"def broken(:\n",
        b"text = '\\d'\n",  # the compiler warns, and the script is to do so
        b"# coding: no such coding\n",
        b"\0",
        b"x = " + b"-" * 100_000 + b"1\n",
    ],
    ids=["no syntax", "a warning", "no coding", "a null byte", "too deep"],
)
def test_what_does_not_simply_compile_is_left_to_the_script(path: Path, source: bytes) -> None:
    path.write_bytes(source)
    files = compiled(path, sha256(source))

    assert files.code(source, str(path)) is None


def test_a_file_with_other_content_than_promised_is_not_compiled(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a store that another program has changed: the compiler never sees it."""
    monkeypatch.setattr("builtins.compile", lambda *_, **__: pytest.fail("was compiled"))
    path.write_bytes(OTHER)
    files = compiled(path)

    assert files.code(OTHER, str(path)) is None


def test_a_missing_file_is_left_to_the_script(path: Path) -> None:
    path.unlink()
    assert not CompiledFiles().add(str(path.parent), "/exec", {path.name: sha256(SOURCE)})


def imported(files: CompiledFiles, path: Path) -> str:
    """What a fork that uses ``files`` imports, and whether it had to compile it."""

    def work() -> str:
        sys.path.insert(0, str(path.parent))
        files.import_from()
        module = importlib.import_module(NAME)
        code = files.code(path.read_bytes(), str(path))
        taken = code is not None and module.say.__code__ in code.co_consts
        return f"{module.say()} {'taken' if taken else 'compiled'} {module.__file__ == str(path)}"

    return call_in_fork(work)


def test_an_import_takes_the_code_of_a_file(path: Path) -> None:
    assert imported(compiled(path), path) == "first taken True"


def test_an_import_of_an_altered_file_is_compiled_anew(path: Path) -> None:
    files = compiled(path)
    path.write_bytes(OTHER)

    assert imported(files, path) == "other compiled True"
    path.write_bytes(SOURCE)
    assert imported(files, path) == "first taken True"
