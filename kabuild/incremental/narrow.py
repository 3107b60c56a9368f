"""A request for some of its packages only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from kabuild.loading.request import Request
from kabuild.model.label import Pattern


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
    if pattern.recursive:
        inner = [path for path in packages if _is_below(path, pattern.package)]
        if inner:
            return [f"{sign}//{path}/..." for path in inner]
    if any(_is_below(pattern.package, path) for path in packages):
        what = "/..." if pattern.recursive else f":{pattern.label.name if pattern.label else 'all'}"
        return [f"{sign}//{pattern.package}{what}"]
    return []


def _is_below(path: str, above: str) -> bool:
    return not above or path == above or path.startswith(f"{above}/")
