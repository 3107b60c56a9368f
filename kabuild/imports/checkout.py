"""The checkout of a benchmark: its commit, and its ``[[repository]]`` table."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.errors import LoadError, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.reading import read_plain
from kabuild.base.toml_text import quoted
from kabuild.imports.git_index import git_directory
from kabuild.loading import load_workspace
from kabuild.loading.repository import Repository
from kabuild.loading.roots import WORKSPACE_FILE
from kabuild.loading.toml_file import parse_toml
from kabuild.loading.workspace import Workspace, parse_workspace
from kabuild.model.label import check_repository

_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_BYTES = 8 << 20


def commit_of(checkout: Path) -> str:
    """The checked-out commit; ``""`` if unknown."""
    try:
        git = git_directory(checkout)
        head = read_plain(git / "HEAD", _MOST_BYTES).decode().strip()
        if not head.startswith("ref: "):
            return head if _COMMIT.fullmatch(head) else ""
        return _resolve(git, head.removeprefix("ref: "))
    except (OSError, RuntimeError, ValueError, IndexError):  # RuntimeError: a loop of links
        return ""


def _resolve(git: Path, ref: str) -> str:
    common = git
    if (git / "commondir").is_file():
        common = (git / read_plain(git / "commondir", _MOST_BYTES).decode().strip()).resolve()
    for home in (git, common):
        if (home / ref).is_file():
            found = read_plain(home / ref, _MOST_BYTES).decode().strip()
            return found if _COMMIT.fullmatch(found) else ""
    for line in read_plain(common / "packed-refs", _MOST_BYTES).decode().splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.fullmatch(commit):
            return commit
    return ""


def _quoted(path: str) -> str:
    try:
        return quoted(path)
    except ValueError:
        what = f"the path of the checkout is not UTF-8: {path!a}"
        raise UsageError(Reason.BAD_FLAG, what, hint="rename it, or link to it") from None


@dataclass(frozen=True)
class Declared:
    """A repository, and the workspace that has it.

    Attributes:
        stanza: what WORKSPACE.toml lacks to declare it; "" if it does already.
        before: the commit that WORKSPACE.toml has, if the checkout is at another one now.
    """

    workspace: Workspace
    repository: Repository
    stanza: str = ""
    before: str = ""

    def write(self) -> None:
        """Change WORKSPACE.toml, unless another import did meanwhile."""
        root, name = self.workspace.root, self.repository.name
        if self.stanza and name not in load_workspace(root).repositories:
            atomic_write(root / WORKSPACE_FILE, _with(root, self.stanza).encode())
        elif self.before:
            text = _text(root).replace(self.before, self.repository.commit)
            atomic_write(root / WORKSPACE_FILE, text.encode())


def declare_repository(root: Path, name: str, adapter: str, checkout: Path) -> Declared:
    """The repository ``name`` of the workspace at ``root``; nothing is written yet.

    It is at the commit that is checked out now. Raises UsageError if there is no such directory, or
    the name is taken by another one.
    """
    check_repository(name)
    if not checkout.is_dir():
        raise UsageError(Reason.BAD_FLAG, f"no directory '{checkout}'")
    workspace, stanza = load_workspace(root), ""
    if name not in workspace.repositories:
        stanza = _stanza(root, name, adapter, checkout)
        workspace = parse_workspace(root, parse_toml(_with(root, stanza), WORKSPACE_FILE))
    known = workspace.repositories[name]
    if (known.adapter, known.path) != (adapter, checkout.resolve()):
        raise UsageError(
            Reason.BAD_FLAG,
            f"{known.position}: '@{name}' is already {known.adapter} at {known.shown}",
            hint="choose another name: --name=NAME, or change 'path' if the checkout has moved",
        )
    found, before, text = other_commit(known), known.commit, _text(root)
    if found and text.count(before) == 1:  # else the import itself says what differs
        changed = parse_toml(text.replace(before, found), WORKSPACE_FILE)
        workspace = parse_workspace(root, changed)
        return Declared(workspace, workspace.repositories[name], before=before)
    return Declared(workspace, known, stanza)


def _stanza(root: Path, name: str, adapter: str, checkout: Path) -> str:
    shown = os.path.relpath(checkout.resolve(), root)
    lines = ["", "[[repository]]", f'name    = "{name}"', f'adapter = "{adapter}"']
    lines.append(f"path    = {_quoted(shown)}")
    if commit := commit_of(checkout):
        lines.append(f'commit  = "{commit}"')
    return "\n".join(lines) + "\n"


def _with(root: Path, stanza: str) -> str:
    """The text of WORKSPACE.toml with a stanza at its end."""
    before = _text(root)
    return before + ("" if before.endswith("\n") else "\n") + stanza


def _text(root: Path) -> str:
    return read_plain(root / WORKSPACE_FILE, _MOST_BYTES).decode()


def other_commit(repository: Repository) -> str:
    """The commit that is checked out, if WORKSPACE.toml has another one; else empty."""
    found = commit_of(repository.path)
    return found if repository.commit and found != repository.commit else ""


def check_commit(repository: Repository) -> str:
    """The commit of a checkout. Raises LoadError if WORKSPACE.toml asks for another one."""
    if found := other_commit(repository):
        raise LoadError(
            Reason.INPUT_CHANGED,
            f"{repository.shown} is at commit {found[:12]}, expected {repository.commit[:12]}",
            position=repository.position,
            hint=f"to import the new one: kabuild import @{repository.name}\n"
            f"to keep the old one: git -C {repository.shown} checkout {repository.commit[:12]}",
        )
    return repository.commit or commit_of(repository.path)
