"""Compilations that are kept between test runs, by all that they depend on.

These are the driver's own files, the Python and the wheels that have its compilers, the command,
and the source with the headers beside it. Pinned compilers of other origin are named by digests.
Tests that compare two compilations run both anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.testkit.hip_drivers import run_driver
from tests.testkit.kept import REPOSITORY, kept

Completed = subprocess.CompletedProcess[str]

_DRIVERS = ("toolchains/hip", "toolchains/platforms", "rules/harness/tools/terms")
_WHEELS = ("ziglang", "triton")
_HEADERS = frozenset({".h", ".hpp", ".cuh", ".inc"})
_PLACES = ("\0source\0", "\0output\0")
_TEMPORARY = tempfile.gettempdir() + "/"


def compile_once(command: Sequence[str], source: Path, output: Path) -> Completed:
    """What comes of ``command``, which compiles ``source`` to ``output``.

    It runs unless an equal command has. What depends on other temporary files runs each time.
    """
    places = (str(source), str(output))
    words = [_replaced(word, places, _PLACES) for word in command]
    if any(map(_is_temporary, words)):
        return _run(command)
    found = kept("compiled") / _key(words, source)
    if not found.exists():
        done = _run(command)
        texts = [_replaced(text, places, _PLACES) for text in (done.stdout, done.stderr)]
        if not any(map(_is_temporary, texts)):
            _keep({"code": done.returncode, "texts": texts}, output, found)
        return done
    done = json.loads((found / "done.json").read_text())
    for name, made in _made(output):
        if (found / name).exists():
            shutil.copyfile(found / name, made)
    texts = [_replaced(text, _PLACES, places) for text in done["texts"]]
    return Completed(list(command), done["code"], *texts)


def _is_temporary(text: str) -> bool:
    """Whether it names temporary files; the repository itself may lie among these."""
    return _TEMPORARY in text.replace(f"{REPOSITORY}/", "")


def _run(command: Sequence[str]) -> Completed:
    return run_driver(command)


def _keep(done: object, output: Path, found: Path) -> None:
    with tempfile.TemporaryDirectory(dir=found.parent) as scratch:
        directory = Path(scratch, "result")
        directory.mkdir()
        for name, made in _made(output):
            if made.exists():
                shutil.copyfile(made, directory / name)
        (directory / "done.json").write_text(json.dumps(done))
        with contextlib.suppress(OSError):  # another process was first
            directory.rename(found)


def _made(output: Path) -> list[tuple[str, Path]]:
    return [("library", output), ("places", output.with_suffix(".places.json"))]


def _replaced(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    for before, after in zip(old, new, strict=True):
        text = text.replace(before, after)
    return text


def _key(words: Sequence[str], source: Path) -> str:
    headers = sorted(path for path in source.parent.iterdir() if path.suffix in _HEADERS)
    files = [(path.name, path.read_bytes().hex()) for path in (source, *headers)]
    return hashlib.sha256(json.dumps([_tools(), words, files]).encode()).hexdigest()


@cache
def _tools() -> str:
    """A digest of what compiles."""
    code = hashlib.sha256(sys.version.encode())
    for name in _WHEELS:
        code.update((importlib.metadata.distribution(name).read_text("RECORD") or "").encode())
    for driver in _DRIVERS:
        files = (path for path in (REPOSITORY / driver).rglob("*") if path.is_file())
        for path in sorted(path for path in files if path.suffix != ".pyc"):
            code.update(f"{path}\0".encode() + path.read_bytes())
    return code.hexdigest()
