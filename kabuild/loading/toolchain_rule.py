"""The one kind of target that is built in: toolchains. The toolchain layer reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kabuild.rule import attr
from kabuild.rule.attr import AttributeProblem
from kabuild.rule.context import Context
from kabuild.rule.rule import Rule

PINS = ("environment", "distribution", "local")


def check_toolchain(attrs: Mapping[str, Any]) -> None:
    """Exactly one pin, with what belongs to it."""
    given = [pin for pin in PINS if attrs[pin]]
    if len(given) != 1:
        found = " and ".join(f"'{pin}'" for pin in given) or "none"
        raise AttributeProblem(
            f"a toolchain has exactly one pin, found {found}",
            (given[1],) if given else (),
            f"pins: {', '.join(PINS)}",
        )
    if bool(attrs["version"]) != (given == ["distribution"]):
        raise AttributeProblem(
            "'version' and 'distribution' belong together",
            ("version",) if attrs["version"] else ("distribution",),
        )
    if attrs["paths"] and given != ["local"]:
        raise AttributeProblem("'paths' belongs to 'local'", ("paths",))


def check_local(path: str) -> None:
    """An adopted tree is on this machine, not in the package."""
    if not path.startswith("/"):
        raise AttributeProblem(f"'{path}' is no absolute path")


def check_paths(paths: list[str]) -> None:
    """Parts of an adopted tree."""
    for index, path in enumerate(paths):
        if path.startswith("/") or ".." in path.split("/") or not path:
            raise AttributeProblem(f"'{path}' is no path below 'local'", (index,))


def implement(_: Context) -> None:
    """A toolchain makes nothing; the rules that use it ask for it by label."""


TOOLCHAIN = Rule(
    kind="toolchain",
    doc="Tools pinned by content.",
    implement=implement,
    attrs={
        "role": attr.string("What the tools do, such as python or hip-compiler.", required=True),
        "doc": attr.string("One sentence for people.", default=""),
        "platforms": attr.strings("Where it can be used; everywhere when empty."),
        "environment": attr.strings(
            "Pin: the running Python with these installed distributions and what they need."
        ),
        "distribution": attr.string("Pin: one installed Python distribution."),
        "version": attr.string("The version that 'distribution' has to have."),
        "local": attr.string("Pin: a directory of this machine, by content.", check=check_local),
        "paths": attr.strings(
            "The parts of 'local' that count; all when empty.", check=check_paths
        ),
    },
    check=check_toolchain,
)
