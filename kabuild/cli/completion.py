"""Shell completion of labels, agents, platforms and configs.

Whoever presses Tab in a stranger's workspace has not asked for anything of it to run: no code of
the workspace does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path

import click

from kabuild.base.errors import KabuildError
from kabuild.loading import Loader, find_workspace, load_workspace
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.workspace import AGENTS_PACKAGE
from kabuild.scaffold import AGENTS

Completer = Callable[[click.Context, click.Parameter, str], list[str]]
_QUERY_PUNCTUATION = " (,"


def _quiet(complete: Callable[[str], Iterable[str]]) -> Completer:
    """Complete nothing without a workspace, or in one with errors: a build reports those."""

    @wraps(complete)
    def safely(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        try:
            return [word for word in complete(incomplete) if word.startswith(incomplete)]
        except (KabuildError, OSError):
            return []

    return safely


@_quiet
def complete_labels(incomplete: str) -> Iterable[str]:
    """Packages below the workspace's root, patterns over them, and after a colon their targets."""
    typed = incomplete.removeprefix("-")
    sign = incomplete[: len(incomplete) - len(typed)]
    loader = _loader()
    if ":" in typed:
        package = typed.partition(":")[0]
        names = loader.package(package.removeprefix("//")).names()
        return [f"{sign}{package}:{name}" for name in sorted(names)]
    packages = [*loader.packages_below("")]
    above = {parent for package in packages for parent in _parents(package)}
    return [
        *(f"{sign}//{parent}/..." if parent else f"{sign}//..." for parent in sorted(above)),
        *(f"{sign}//{package}" for package in packages if package),
    ]


@_quiet
def complete_agents(_: str) -> Iterable[str]:
    """The names of ``[agents]`` and of the agents that ship, and labels of those in agents/."""
    loader = _loader()
    own = _agents_of(loader, AGENTS) if loader.has_package(AGENTS) else []
    labels = (f"//{AGENTS}:{name}" for name in own)
    return [*sorted({*loader.workspace.agents, *_agents_of(loader, AGENTS_PACKAGE)}), *labels]


@_quiet
def complete_platforms(incomplete: str) -> Iterable[str]:
    """The names of platforms, and after a colon their architectures."""
    platforms = PlatformIndex.around(Path.cwd())
    name, colon, _ = incomplete.partition(":")
    if not colon:
        return platforms.names()
    return [f"{name}:{arch}" for arch in platforms.spec(name).architectures]


@_quiet
def complete_configs(_: str) -> Iterable[str]:
    """The names of the ``[config.NAME]`` tables."""
    return sorted(load_workspace(find_workspace(Path.cwd())).configs)


def complete_query(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The label at the end of a query expression."""
    end = max(incomplete.rfind(mark) for mark in _QUERY_PUNCTUATION) + 1
    before, label = incomplete[:end], incomplete[end:]
    return [f"{before}{word}" for word in complete_labels(ctx, parameter, label)]


def _agents_of(loader: Loader, package: str) -> list[str]:
    targets = loader.package(package).targets.items()
    return [name for name, target in targets if target.kind == "agent"]


def _loader() -> Loader:
    return Loader(load_workspace(find_workspace(Path.cwd())), own_rules=False)


def _parents(package: str) -> Iterable[str]:
    parts = package.split("/")
    return ("/".join(parts[:count]) for count in range(len(parts)))
