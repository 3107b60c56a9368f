"""Python files that many scripts import, compiled once for all forks of a zygote.

A file is compiled only if the spawner vouches for it, as for the judge's own files: the compiler
never sees a candidate's. A script that runs in place gets a compiled file only where the file that
it reads itself has the very same bytes, so that no stale code ever runs. It cannot change what
other scripts get: it has a copy of this process's memory.

Self-contained, because it runs inside a zygote.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import PathEntryFinder


class CompiledFiles:
    """By path in sandboxes, the source and the code of a file: the version that came last."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[str, bytes, CodeType]] = {}  # with the digest of the source

    def add(self, directory: str, root: str, digests: Mapping[str, str]) -> bool:
        """Compile those files below ``directory`` that scripts will see below ``root``.

        ``digests`` has the SHA-256 of each by its path. A file with another one, and one that
        does not compile without a warning, is left to the scripts. Returns whether there was a
        new one.
        """
        new = False
        for relative, digest in digests.items():
            path = f"{root}/{relative}"
            found = self._files.get(path)
            if found and found[0] == digest:
                continue
            source = _read(os.path.join(directory, relative))  # noqa: PTH118 - the hot path
            if _sha256(source) == digest and (code := _compile(source, path)):
                self._files[path] = digest, source, code
                new = True
        return new

    def code(self, source: bytes, path: str) -> CodeType | None:
        """The code of the file ``path``, if ``source`` is what was compiled."""
        found = self._files.get(path)
        return found[2] if found and found[1] == source else None

    def import_from(self) -> None:
        """Have this process import these files as they are compiled; for a fork."""
        directories = {os.path.dirname(path) for path in self._files}  # noqa: PTH120 - hot path
        if not directories:
            return

        def loader(name: str, path: str) -> SourceFileLoader:
            # Chosen here, so that a traceback never has a frame of this module.
            code = self.code(_read(path), path)
            return _CompiledLoader(name, path, code) if code else SourceFileLoader(name, path)

        find = FileFinder.path_hook(
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (loader, SOURCE_SUFFIXES),  # type: ignore[arg-type]
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )

        def hook(directory: str) -> PathEntryFinder:
            if directory not in directories:
                raise ImportError("no compiled files here", path=directory)
            return find(directory)

        sys.path_hooks.insert(0, hook)


class _CompiledLoader(SourceFileLoader):
    """Loads a source file by the code that it was compiled to before."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - as loaders have it
        """The code that ``fullname`` was compiled to."""
        return self._code


def _read(path: str) -> bytes:
    """The content of a file; nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _sha256(source: bytes) -> str:
    from hashlib import sha256  # a zygote that starts programs does without it

    return sha256(source).hexdigest()


def _compile(source: bytes, path: str) -> CodeType | None:
    """The code of ``source``; None if a script that compiles it would have something to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            code = compile(source, path, "exec", dont_inherit=True)
        except Exception:  # noqa: BLE001 - whatever it is, the script reports it
            return None
    return code
