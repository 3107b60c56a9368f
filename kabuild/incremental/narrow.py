"""The part of a request that has to be built."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kabuild.base.errors import KabuildError
from kabuild.incremental.recall import Recalled
from kabuild.loading.request import Request
from kabuild.loading.roots import find_workspace
from kabuild.model.label import Pattern
from kabuild.pipeline import Plan, load, plan
from kabuild.store import Store


def plan_changed(
    request: Request, recalled: Recalled | None, store: Store
) -> tuple[Plan, Recalled | None]:
    """The plan of what is not recalled, or of everything where that makes no sense alone.

    Raises as ``load`` and ``plan`` do, of the whole request.
    """
    if recalled:
        narrowed = narrow(request, recalled.changed(), find_workspace(request.cwd))
        with suppress(KabuildError):  # whatever is wrong is said of the whole request
            if narrowed:
                return plan(narrowed, load(narrowed), store), recalled
    return plan(request, load(request), store), None


def narrow(request: Request, packages: Collection[str], root: Path) -> Request | None:
    """The part of ``request`` that concerns ``packages`` and what lies below them.

    ``root`` is the workspace's. None where a pattern's meaning
    depends on what else there is, as a bare name's does.
    """
    if any(":" not in text and "..." not in text and "//" not in text for text in request.patterns):
        return None
    here = request.cwd.resolve().relative_to(root).as_posix().removeprefix(".")
    patterns = [Pattern.parse(text.rstrip("/"), package=here) for text in request.patterns]
    parts = [part for pattern in patterns for part in _parts(pattern, sorted(packages))]
    return replace(request, patterns=tuple(parts))


def _parts(pattern: Pattern, packages: Sequence[str]) -> list[str]:
    sign = "-" if pattern.negative else ""
    name = f"*.{pattern.part}" if pattern.part else "all"
    if pattern.recursive:
        inner = [path for path in packages if _is_below(path, pattern.package)]
        if inner:
            return [f"{sign}//{path}/...:{name}" for path in inner]
    if any(_is_below(pattern.package, path) for path in packages):
        below = "/..." if pattern.recursive else ""
        return [f"{sign}//{pattern.package}{below}:{pattern.label.name if pattern.label else name}"]
    return []


def _is_below(path: str, above: str) -> bool:
    return not above or path == above or path.startswith(f"{above}/")
