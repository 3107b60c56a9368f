"""The part of ``kabuild doctor`` about toolchains outside the running Python."""

from __future__ import annotations

from collections.abc import Iterator

from kabuild.base.errors import KabuildError
from kabuild.cli.finding import Finding
from kabuild.cli.finding import State as Found
from kabuild.cli.toolchain_context import declared
from kabuild.toolchain.declaration import names_of
from kabuild.toolchain.inventory import Item, State, take_stock

_INSTALLED = {"environment", "distribution"}


def find_toolchains() -> Iterator[Finding]:
    """Each one that is fetched or adopted, and packages whose version differs from the pin.

    Empty outside a workspace.
    """
    try:
        with declared() as toolchains:
            items = [take_stock(item, toolchains.resolver) for item in toolchains.declarations]
    except KabuildError:
        return  # commands that need them report this
    names = names_of(item.declaration for item in items)
    for item in items:
        name, problem = names[item.declaration.label], item.problem
        if item.kind not in _INSTALLED:
            yield _finding(item, name)
        elif problem and item.state is State.DRIFTED:
            yield Finding(name, Found.PROBLEM, problem.message, problem.hint)


def _finding(item: Item, name: str) -> Finding:
    label = item.declaration.label
    found = f"{item.version}: {item.state.value} ({item.declaration.role})"
    if item.state is State.READY:
        return Finding(name, Found.OK, found)
    pin = f"kabuild toolchain pin {label.short} --from DIRECTORY"
    state = Found.WARNING if item.state is State.DRIFTED else Found.OPTIONAL
    again = pin if item.kind == "local" else f"kabuild toolchain fetch --force {label.short}"
    advice = {
        State.TO_FETCH: f"kabuild toolchain fetch {label.short} (automatic when needed)",
        State.MISSING: f"install it, and {pin}",
        State.DRIFTED: again,
        State.UNLOCKED: f"kabuild toolchain lock {label.short}",
    }
    return Finding(name, state, found, advice[item.state])
