"""Files and trees, named before they exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

Root = Choice["workspace", "builtin", "kabuild", "user"]


@dataclass(frozen=True, order=True)
class Source:
    """A file or directory that a person wrote.

    ``root`` says what ``path`` is relative to: the workspace, the rules and toolchains that
    ship with kabuild, kabuild's own package, or (``user``) an absolute path from the
    command line. A directory is taken whole, save ``__pycache__`` and ``.git`` in it.
    """

    path: str
    root: Root = "workspace"


@dataclass(frozen=True, order=True)
class Output:
    """A file or directory that an action will make: ``path`` below its ``out/``."""

    producer: str
    path: str


@dataclass(frozen=True, order=True)
class Literal:
    """Bytes that a rule computed, such as a judge's specification."""

    data: bytes


Artifact = Source | Output | Literal
