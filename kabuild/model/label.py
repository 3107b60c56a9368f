"""Labels name targets; patterns name sets of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kabuild.base.errors import Reason, UsageError

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=/-]*(#[1-9][0-9]*)?")


@dataclass(frozen=True, order=True)
class Label:
    """``//package:name``. Two labels that print alike are the same target.

    ``package`` is a POSIX path relative to the workspace, ``""`` for its root. A name may
    have dotted parts: ``softmax.perf`` is the sub-target ``perf`` of ``softmax``. It may end
    in the number of a trial, ``softmax.perf#2``; the first has none.
    """

    package: str
    name: str

    @classmethod
    def parse(cls, text: str, *, package: str | None = None) -> Label:
        """Read ``//a/b:t``, ``//a/b`` (the same as ``//a/b:b``), ``:t`` or ``a/b:t``.

        The last two are relative to ``package``. Raises UsageError(BAD_LABEL).
        """
        _refuse_repository(text, text)
        if not text:
            raise _bad(text, "it is empty")
        absolute = text.startswith("//")
        if not absolute and package is None:
            raise _bad(text, "a label starts with '//'")
        body = text[2:] if absolute else text
        path, colon, name = body.partition(":")
        if not absolute:
            path = "/".join(part for part in (package, path) if part)
        if not colon:
            path, mark, number = path.partition("#")
            name = f"{path.rpartition('/')[2]}{mark}{number}"
        _check_package(path, text)
        if not _NAME.fullmatch(name) or ".." in name.split("/"):
            raise _bad(text, f"'{name}' is no target name" if name else "the target has no name")
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
        """Which of several trials this is: 1 unless the name says otherwise."""
        return int(self.name.partition("#")[2] or 1)

    def in_trial(self, number: int) -> Label:
        """The same target in the trial ``number``; the first is the plain label."""
        name = self.name.partition("#")[0]
        return Label(self.package, f"{name}#{number}" if number > 1 else name)

    def covers(self, label: Label) -> bool:
        """Whether ``label`` is this target or, where no number says which, a trial of it."""
        return label == self or self == label.in_trial(1) or self.in_trial(self.trial) == label

    @property
    def short(self) -> str:
        """The shortest text that reads back as this label."""
        name, mark, number = self.name.partition("#")
        same = name == self.package.rpartition("/")[2]
        return f"//{self.package}{mark}{number}" if same and self.package else str(self)

    def __str__(self) -> str:
        return f"//{self.package}:{self.name}"


@dataclass(frozen=True)
class Pattern:
    """``//a/...``, ``//a:all``, ``//a:t``; with a leading ``-`` it takes away.

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
        _refuse_repository(body, text)
        head, colon, name = body.partition(":")
        recursive = head == "..." or head.endswith("/...")
        several = name in {"all", "*"} or name.startswith("*.")
        if not (several if colon else recursive):
            label = Label.parse(body, package=package)
            return cls(text, negative, label.package, recursive=False, label=label)
        prefix = "//" if head.startswith("//") else ""
        path = head.removeprefix(prefix)
        if recursive:
            path = path.removesuffix("...").rstrip("/")
        if not prefix:
            path = "/".join(part for part in (package, path) if part)
        _check_package(path, text)
        part = name.removeprefix("*.") if name.startswith("*.") else ""
        if name.startswith("*.") and not _PART.fullmatch(part):
            raise _bad(text, f"'{part}' is no name of a part")
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
        return self.recursive and (not self.package or label.package.startswith(f"{self.package}/"))

    def __str__(self) -> str:
        return self.text


def _refuse_repository(body: str, text: str) -> None:
    if body.startswith("@"):
        raise UsageError(
            Reason.BAD_LABEL,
            f"'{text}' names another repository; kabuild has one workspace and no '@'",
            hint="write the label from the workspace's root, such as //tasks/hip2hip/softmax",
        )


def _check_package(path: str, text: str) -> None:
    if path and not all(_PART.fullmatch(part) for part in path.split("/")):
        raise _bad(text, f"'{path}' is no package path")


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        Reason.BAD_LABEL,
        f"'{text}' is no label: {why}",
        hint="labels look like //tasks/hip2hip/softmax:softmax.perf or :softmax.perf",
    )
