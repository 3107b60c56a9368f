"""Labels name targets; patterns name sets of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kabuild.base.errors import Reason, UsageError

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=/-]*(#[1-9][0-9]{0,8})?")
_REPOSITORY = re.compile(r"[a-z][a-z0-9_-]*")
_LONGEST_PART, _LONGEST = 200, 1000


@dataclass(frozen=True, order=True)
class Label:
    """``//package:name``. Labels with the same text are the same target.

    ``package`` is a POSIX path relative to the workspace, ``""`` for its root. In an external
    repository it begins with ``@`` and the repository's name: ``@kernelbench//level1/23_Softmax``
    has the package ``@kernelbench/level1/23_Softmax``. A name may
    have dotted parts: ``softmax.perf`` is the sub-target ``perf`` of ``softmax``. It may end
    in the number of a trial, ``softmax.perf#2``; the first has none.
    """

    package: str
    name: str

    @classmethod
    def parse(cls, text: str, *, package: str | None = None) -> Label:
        """Read ``//a/b:t``, ``//a/b`` (the same as ``//a/b:b``), ``:t`` or ``a/b:t``.

        The last two are relative to ``package``. ``@name//a/b:t`` is in an external repository.
        Raises UsageError(BAD_LABEL).
        """
        if not text:
            raise _bad(text, "it is empty")
        root, body = _split_root(text, text)
        if root is None and package is None:
            raise _bad(text, "a label starts with '//'")
        path, colon, name = body.partition(":")
        path = _join(package or "" if root is None else root, path)
        if not colon:
            path, mark, number = path.partition("#")
            name = f"{path.rpartition('/')[2]}{mark}{number}"
        _check_package(path, text)
        _check_length(f"{path}/{name}", text)
        if not _NAME.fullmatch(name) or ".." in name.split("/"):
            raise _bad(
                text, f"'{name}' is not a valid target name" if name else "the target has no name"
            )
        return cls(path, name)

    def sibling(self, name: str) -> Label:
        """Another target of the same package."""
        return Label(self.package, name)

    def sub(self, part: str) -> Label:
        """The sub-target ``part``: ``softmax`` and ``perf`` give ``softmax.perf``."""
        name, mark, number = self.name.partition("#")
        return Label(self.package, f"{name}.{part}{mark}{number}")

    @property
    def trial(self) -> int:
        """The number of the trial: 1 unless the name has another."""
        return int(self.name.partition("#")[2] or 1)

    def in_trial(self, number: int) -> Label:
        """The same target in the trial ``number``; the first is the plain label."""
        name = self.name.partition("#")[0]
        return Label(self.package, f"{name}#{number}" if number > 1 else name)

    def covers(self, label: Label) -> bool:
        """Whether ``label`` is this target or, if this has no number, a trial of it."""
        return label == self or self == label.in_trial(1) or self.in_trial(self.trial) == label

    @property
    def short(self) -> str:
        """The shortest text that reads back as this label."""
        name, mark, number = self.name.partition("#")
        same = name == self.package.rpartition("/")[2]
        return f"{show_package(self.package)}{mark}{number}" if same else str(self)

    def __str__(self) -> str:
        return f"{show_package(self.package)}:{self.name}"


@dataclass(frozen=True)
class Pattern:
    """``//a/...``, ``//a:all``, ``//a:t``; a leading ``-`` subtracts.

    ``label`` is set for a single target, otherwise ``package`` with ``recursive``. ``part`` is
    ``compile`` of ``//a/...:*.compile``, the sub-targets of that name.
    """

    text: str
    negative: bool
    package: str
    recursive: bool
    label: Label | None
    part: str = ""

    @classmethod
    def parse(cls, text: str, *, package: str = "") -> Pattern:
        """Read one pattern, relative to ``package``. Raises UsageError(BAD_LABEL)."""
        negative = text.startswith("-")
        body = text[1:] if negative else text
        head, colon, name = body.partition(":")
        recursive = head == "..." or head.endswith("/...")
        several = name in {"all", "*"} or name.startswith("*.")
        if not (several if colon else recursive):
            label = Label.parse(body, package=package)
            return cls(text, negative, label.package, recursive=False, label=label)
        root, path = _split_root(head, text)
        if recursive:
            path = path.removesuffix("...").rstrip("/")
        path = _join(package if root is None else root, path)
        _check_package(path, text)
        _check_length(path, text)
        part = name.removeprefix("*.") if name.startswith("*.") else ""
        if name.startswith("*.") and not _PART.fullmatch(part):
            raise _bad(text, f"'{part}' is not a valid part")
        return cls(text, negative, path, recursive, label=None, part=part)

    def covers(self, label: Label) -> bool:
        """Whether a declared target, or a sub-target of it, is in this set.

        A ``part`` is compared with the end of a name, so ``compile`` with ``baseline.compile``.
        """
        if self.label:
            return label == self.label or (
                label.package == self.label.package and label.name.startswith(f"{self.label.name}.")
            )
        if self.part and not label.in_trial(1).name.endswith(f".{self.part}"):
            return False
        if label.package == self.package:
            return True
        if not self.package:  # every package of the workspace
            return self.recursive and not repository_of(label.package)
        return self.recursive and label.package.startswith(f"{self.package}/")

    def __str__(self) -> str:
        return self.text


def selected(text: str, patterns: Sequence[Pattern]) -> bool:
    """Whether patterns select the target ``text``, which may come from a file and be no label.

    The last that covers it decides. Without any, everything is selected.
    """
    try:
        label = Label.parse(text)
    except UsageError:
        return not patterns
    covering = [pattern for pattern in patterns if pattern.covers(label)]
    return not covering[-1].negative if covering else not patterns


def names_package(path: str) -> bool:
    """Whether a path, relative to the workspace or to an external repository, can be a package."""
    try:
        _check_package(path, path)
        _check_length(path, path)
    except UsageError:
        return False
    return not path.startswith("@")


def repository_of(package: str) -> str:
    """The external repository of a package; ``""`` for the workspace."""
    return package[1:].partition("/")[0] if package.startswith("@") else ""


def show_package(package: str) -> str:
    """A package as people write it: ``//tasks/softmax``, or ``@kernelbench//level1``."""
    if not package.startswith("@"):
        return f"//{package}"
    repository, _, path = package.partition("/")
    return f"{repository}//{path}"


def check_repository(name: str) -> None:
    """Check the name of an external repository. Raises UsageError(BAD_LABEL)."""
    if not _REPOSITORY.fullmatch(name) or len(name) > _LONGEST_PART:
        raise UsageError(
            Reason.BAD_LABEL,
            f"'{name}' is not a valid repository name",
            hint="use lower-case letters, digits, '_' and '-', and begin with a letter",
        )


def _split_root(body: str, text: str) -> tuple[str | None, str]:
    """Where a label starts, and the rest of it: ``""`` and ``@name`` for absolute ones."""
    if body.startswith("//"):
        if body.startswith("//@"):
            raise _bad(text, "write the repository before the slashes: @name//...")
        return "", body[2:]
    if not body.startswith("@"):
        name, slashes, _ = body.partition("//")
        if slashes and _REPOSITORY.fullmatch(name):
            raise UsageError(
                Reason.BAD_LABEL,
                f"'{text}' is not a valid label: '//' is not at its start",
                hint=f"a label of an external repository begins with '@': @{text.lstrip('-')}",
            )
        return None, body
    repository, slashes, rest = body.partition("//")
    if not slashes or not _REPOSITORY.fullmatch(repository[1:]):
        raise UsageError(
            Reason.BAD_LABEL,
            f"'{text}' is not a valid label of an external repository",
            hint="such labels look like @kernelbench//level1/23_Softmax",
        )
    return repository, rest


def _join(root: str, path: str) -> str:
    return "/".join(part for part in (root, path) if part)


def _check_package(path: str, text: str) -> None:
    inner = path.partition("/")[2] if path.startswith("@") else path
    if inner and not all(_PART.fullmatch(part) for part in inner.split("/")):
        what = "it" if path == text else f"'{path}'"
        raise _bad(text, f"{what} is not a valid package path")


def _check_length(path: str, text: str) -> None:
    """Check a length: labels become names of directories and files, with suffixes."""
    if len(path) > _LONGEST or any(len(part) > _LONGEST_PART for part in path.split("/")):
        what = f"it has more than {_LONGEST_PART} characters in one part, or {_LONGEST} in all"
        raise _bad(f"{text[:60]}...", what)


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        Reason.BAD_LABEL,
        f"'{text}' is not a valid label: {why}",
        hint="labels look like //tasks/hip2hip/softmax:softmax.perf or :softmax.perf",
    )
