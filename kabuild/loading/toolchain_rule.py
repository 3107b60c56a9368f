"""Toolchains, the only built-in kind of target. The toolchain layer reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kabuild.rule import attr
from kabuild.rule.attr import AttributeProblem
from kabuild.rule.context import Context
from kabuild.rule.rule import Rule

PINS = ("environment", "distribution", "local", "pypi", "deb", "archive")
_FETCHED = ("pypi", "deb", "archive")
_BELONGS = {
    "version": ("distribution",),
    "sha256": ("archive",),
    "paths": ("local", *_FETCHED),
    "requires": ("local", *_FETCHED),
    "machines": _FETCHED,
    "strip_prefix": _FETCHED,
    "links": _FETCHED,
}
"""The pins that each attribute belongs to."""

_WHEEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+=[0-9][A-Za-z0-9.+~:-]*")
_MACHINE = re.compile(r"linux-[a-z0-9_]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_toolchain(attrs: Mapping[str, Any]) -> None:
    """Check for exactly one pin, with its own attributes."""
    given = [pin for pin in PINS if attrs[pin]]
    if len(given) != 1:
        found = " and ".join(f"'{pin}'" for pin in given) or "none"
        raise AttributeProblem(
            f"a toolchain has exactly one pin, found {found}",
            (given[1],) if given else (),
            f"pins: {', '.join(PINS)}",
        )
    for needed, pin in (("version", "distribution"), ("sha256", "archive")):
        if bool(attrs[needed]) != (given == [pin]):
            raise AttributeProblem(
                f"'{needed}' and '{pin}' belong together", (needed if attrs[needed] else pin,)
            )
    for name, pins in _BELONGS.items():
        if attrs[name] and given[0] not in pins:
            owners = " or ".join(f"'{pin}'" for pin in pins)
            raise AttributeProblem(f"'{name}' belongs to {owners}", (name,))


def check_local(path: str) -> None:
    """An adopted tree is on this machine, not in the package."""
    if not path.startswith("/"):
        raise AttributeProblem(f"'{path}' is not an absolute path")


def check_paths(paths: list[str]) -> None:
    """Parts of a tree."""
    for index, path in enumerate(paths):
        if not _is_below(path):
            raise AttributeProblem(f"'{path}' is not a path below the tree", (index,))


def check_requires(paths: list[str]) -> None:
    """Files that a tree must hold; ``a|b`` is either of two."""
    for index, either in enumerate(paths):
        for path in either.split("|"):
            if not _is_below(path):
                raise AttributeProblem(f"'{path}' is not a path below the tree", (index,))


def check_prefix(path: str) -> None:
    """A directory of an archive."""
    if not _is_below(path):
        raise AttributeProblem(f"'{path}' is not a path in an archive", (), "such as nvidia/cu13")


def check_links(links: Mapping[str, Any]) -> None:
    """Symbolic links by path; each stays in the tree."""
    for path, target in links.items():
        if not _is_below(path):
            raise AttributeProblem(f"'{path}' is not a path below the tree", (path,))
        if not isinstance(target, str) or not target or target.startswith("/"):
            raise AttributeProblem(
                f"the target of link '{path}' must be a relative path",
                (path,),
                'such as links = { "lib64" = "lib" }',
            )
        depth = path.count("/")
        for part in target.split("/"):
            depth += -1 if part == ".." else 1
            if depth < 0:
                raise AttributeProblem(f"link '{path}' leaves the tree: {target}", (path,))


def check_wheels(requirements: list[str]) -> None:
    """Wheels, each of exactly one version."""
    _check_each(requirements, _WHEEL, "not a wheel of one version", "nvidia-nvvm==13.0.88")


def check_packages(requirements: list[str]) -> None:
    """Debian packages, each of exactly one version."""
    _check_each(requirements, _PACKAGE, "not a package of one version", "libamdhip64-dev=5.2.3-8")


def check_machines(machines: list[str]) -> None:
    """Kinds of machines."""
    _check_each(machines, _MACHINE, "not a kind of machine", "linux-x86_64")


def check_archive(url: str) -> None:
    """A URL that can be fetched."""
    if not url.startswith(("https://", "http://", "file:///")):
        raise AttributeProblem(f"'{url}' is not a URL", (), "it starts with https://")


def check_sha256(text: str) -> None:
    """A digest as sha256sum prints it."""
    if not _SHA256.fullmatch(text):
        raise AttributeProblem(f"'{text}' is not a SHA-256", (), "64 hexadecimal digits: sha256sum")


def _check_each(values: list[str], form: re.Pattern[str], problem: str, example: str) -> None:
    for index, value in enumerate(values):
        if not form.fullmatch(value):
            raise AttributeProblem(f"'{value}' is {problem}", (index,), f"such as {example}")


def _is_below(path: str) -> bool:
    return not path.startswith("/") and not {"", ".", ".."} & {*path.split("/")}


def implement(_: Context) -> None:
    """A toolchain makes nothing; the rules that use it ask for it by label."""


TOOLCHAIN = Rule(
    kind="toolchain",
    doc="Tools pinned by content.",
    implement=implement,
    attrs={
        "role": attr.string("What the tools do, such as python or hip-compiler.", required=True),
        "doc": attr.string("One sentence for people.", default=""),
        "platforms": attr.platforms("Where it can be used; everywhere when empty."),
        "environment": attr.strings(
            "Pin: the running Python with these installed distributions and their dependencies."
        ),
        "distribution": attr.string("Pin: one installed Python distribution."),
        "version": attr.string("The required version of 'distribution'."),
        "local": attr.string("Pin: a directory of this machine, by content.", check=check_local),
        "pypi": attr.strings("Pin: wheels, as name==version.", check=check_wheels),
        "deb": attr.strings("Pin: Debian packages, as name=version.", check=check_packages),
        "archive": attr.string("Pin: the URL of a .tar.* or .zip file.", check=check_archive),
        "sha256": attr.string("The digest of 'archive'.", check=check_sha256),
        "machines": attr.strings(
            "What is fetched for which machines; linux-aarch64 and linux-x86_64 when empty.",
            check=check_machines,
        ),
        "strip_prefix": attr.string(
            "The directory inside the archives that becomes the tree.", check=check_prefix
        ),
        "paths": attr.strings(
            "The parts of the tree that count; all when empty.", check=check_paths
        ),
        "requires": attr.strings(
            "Files that the tree must hold; a|b means either.",
            check=check_requires,
        ),
        "links": attr.table("Symbolic links to add to the tree, by path.", check=check_links),
    },
    check=check_toolchain,
)
