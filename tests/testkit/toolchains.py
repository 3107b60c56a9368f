"""Toolchains that no machine has to have."""

from __future__ import annotations

from kabuild.model.action import Toolchain
from kabuild.toolchain import Declaration


def any_toolchain(
    declaration: Declaration, *, name: str, fetch: bool = True, secrets: tuple[str, ...] = ()
) -> Toolchain:
    """What a label stands for, with nothing installed; to resolve an analysis with."""
    return Toolchain(name, declaration.role, b"{}", f"/toolchains/{name}")
