"""This machine's toolchains, for actions from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kabuild.base.errors import Reason, ToolchainError, UsageError
from kabuild.loading import Loader, builtin_root, find_workspace, load_workspace
from kabuild.model.action import Toolchain
from kabuild.provision import declarations, provision
from kabuild.store import Store


@contextmanager
def machine_toolchains(cwd: Path, store: Store) -> Iterator[Callable[[str], Toolchain]]:
    """Finds toolchains by name: those of the workspace around ``cwd``, else kabuild's own.

    Fetches pinned ones. Raises ToolchainError for an unknown name.
    """
    root = builtin_root()
    with suppress(UsageError):
        root = find_workspace(cwd)
    known = {item.label.name: item for item in declarations(Loader(load_workspace(root)))}
    found: dict[str, Toolchain] = {}
    with provision(root, store, fetch=True, locked=False, consulted=lambda _: None) as resolve:

        def find(name: str) -> Toolchain:
            if name not in known:
                raise ToolchainError(
                    Reason.NO_TOOLCHAIN, f"no toolchain '{name}' in //toolchains/... here"
                )
            if name not in found:
                found[name] = resolve(known[name], name=name)
            return found[name]

        yield find
