"""Which files of an input root ship with kabuild: those that a zygote may compile."""

from __future__ import annotations

from itertools import accumulate

from kabuild.execution.prepared import Prepared
from kabuild.model.action import Source

_SHIPPED = frozenset({"builtin", "kabuild"})
"""Roots of such sources: kabuild runs files of these itself."""


def shipped_sources(prepared: Prepared) -> dict[str, str]:
    """The SHA-256 of each Python file that ships with kabuild, by its path in the input root.

    None of an action that a bundle or another machine declares: that has an input root only.
    """
    ours, others = set[str](), set[str]()
    for path, item in prepared.action.inputs:
        ships = isinstance(item, Source) and item.root in _SHIPPED
        (ours if ships else others).add(path)
    found = {}
    for path, node in prepared.root.walk() if ours else ():
        if path.endswith(".py"):
            inputs = set(accumulate(path.split("/"), "{}/{}".format))  # it, and what it is below
            if inputs & ours and not inputs & others:
                found[path] = node.digest.hash
    return found
