"""The states of declared toolchains, without fetching anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, unique

from kabuild.base.errors import Reason, ToolchainError
from kabuild.model.action import Toolchain
from kabuild.toolchain.declaration import Declaration, Distribution, Environment, Fetched
from kabuild.toolchain.fetched import FetchedTree, locked_tree
from kabuild.toolchain.installed import versions
from kabuild.toolchain.lock import is_adopted
from kabuild.toolchain.resolution import Resolver
from kabuild.toolchain.tree_store import TreeStore


@unique
class State(Enum):
    """Whether a toolchain can be used here and now."""

    READY = "ready"
    TO_FETCH = "to fetch"
    UNLOCKED = "not locked"
    DRIFTED = "drifted"
    MISSING = "missing"


@dataclass(frozen=True)
class Item:
    """One declared toolchain and its state on this machine.

    Attributes:
        kind: of its pin; ``local`` also if an installed tree was adopted instead.
        version: of its content, for people.
        problem: what is wrong; None if nothing.
        toolchain: as actions would use it; None if it is not ready.
        size: bytes to fetch; 0 for other kinds.
    """

    declaration: Declaration
    kind: str
    version: str
    state: State
    problem: ToolchainError | None = None
    toolchain: Toolchain | None = None
    size: int = 0


def take_stock(declaration: Declaration, resolver: Resolver) -> Item:
    """The state of one toolchain; fetches nothing, even if ``resolver`` may."""
    entry = resolver.lock().find(declaration)
    adopted = is_adopted(entry, declaration)
    item = Item(
        declaration,
        kind="local" if adopted else declaration.kind,
        version=_version(declaration, entry.home if entry and adopted else ""),
        state=State.READY,
    )
    try:
        tree = fetched_tree(declaration, resolver)
        if tree and not _is_here(tree, resolver.trees):
            return replace(item, state=State.TO_FETCH, size=tree.size)
        toolchain = replace(resolver, fetch=None)(declaration)
    except ToolchainError as problem:
        return replace(item, state=_state(problem), problem=problem)
    return replace(item, toolchain=toolchain, size=tree.size if tree else 0)


def fetched_tree(declaration: Declaration, resolver: Resolver) -> FetchedTree | None:
    """A toolchain's tree in the store; None if there is none.

    Raises as ``locked_tree``.
    """
    pin = declaration.pin
    if not isinstance(pin, Fetched) or resolver.adoption(declaration):
        return None
    return locked_tree(declaration, pin, resolver.lock())


def _is_here(tree: FetchedTree, trees: TreeStore | None) -> bool:
    return trees is not None and trees.has(tree.digest)


def _state(problem: ToolchainError) -> State:
    states = {Reason.NOT_LOCKED: State.UNLOCKED, Reason.TOOLCHAIN_DRIFT: State.DRIFTED}
    return states.get(problem.reason, State.MISSING)


def _version(declaration: Declaration, home: str) -> str:
    """The versions in a pin, in few words."""
    pin = declaration.pin
    if home:
        return home
    if isinstance(pin, Environment):
        return ", ".join(item.replace("==", " ") for item in versions(pin)) or "none of it"
    if isinstance(pin, Distribution):
        return pin.version
    if isinstance(pin, Fetched):
        first = pin.requirements[0]
        if pin.kind == "archive":
            return first.rpartition("/")[2]
        return first.partition("=")[2].lstrip("=")
    return pin.home
