"""What a target depends on, on one platform and in one workspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kabuild.base.errors import AnalysisError, LoadError, Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.loading.attributes import PLATFORM
from kabuild.loading.loader import Loader
from kabuild.loading.toolchain_rule import TOOLCHAIN
from kabuild.loading.workspace import AGENTS_PACKAGE
from kabuild.model.label import Label
from kabuild.model.target import Target
from kabuild.rule.attr import PathStep, Type

AGENT = "--agent"
_AGENTS = "agents"
"""The table of WORKSPACE.toml, and the package in which ``kabuild new agent`` declares agents."""
_ABSENT = (Reason.UNKNOWN_PACKAGE, Reason.UNKNOWN_TARGET)


@dataclass(frozen=True)
class Edge:
    """One dependency of a target.

    Attributes:
        label: as the target names it.
        target: its replacement in this workspace, or itself.
        path: the attribute that names it, or ``(AGENT,)`` for the implicit one.
    """

    label: Label
    target: Target
    path: tuple[PathStep, ...]


@dataclass(frozen=True)
class Configured:
    """A target with its labels for one platform, and the targets behind them."""

    target: Target
    edges: tuple[Edge, ...] = ()

    def find(self, label: Label) -> Target | None:
        """The dependency that the target calls ``label``."""
        return next((edge.target for edge in self.edges if edge.label == label), None)


def configure(
    loader: Loader, target: Target, platform: str, agent: Label | None = None
) -> Configured:
    """Fill in ``{platform}`` and find the targets behind all labels.

    ``agent`` is an implicit dependency of targets with gates. Replacements of WORKSPACE.toml
    apply to every label; the target's attributes keep the label that it declared.

    Raises UNKNOWN_PACKAGE or UNKNOWN_TARGET at the attribute's line, AnalysisError
    (UNKNOWN_PLATFORM, NO_TOOLCHAIN) if a default label has no target on the platform,
    UsageError(UNKNOWN_AGENT).
    """
    rule = loader.rule(target)
    attrs: dict[str, Any] = dict(target.attrs)
    edges: list[Edge] = []
    for name, attribute in rule.attrs.items():
        if attribute.type not in {Type.LABEL, Type.LABELS} or target.attrs[name] is None:
            continue
        value = target.attrs[name]
        many = isinstance(value, tuple)
        labels = []
        for index, item in enumerate(value if many else (value,)):
            path: tuple[PathStep, ...] = (name, index) if many else (name,)
            known = isinstance(item, Label)
            label = item if known else _fill(loader, target, item, platform, path)
            labels.append(label)
            edges.append(Edge(label, _follow(loader, target, label, path), path))
        attrs[name] = tuple(labels) if many else labels[0]
    if agent is not None and rule.gates:
        edges.append(Edge(agent, find_agent(loader, agent), (AGENT,)))
    return Configured(replace(target, attrs=attrs), tuple(edges))


def replaced(loader: Loader, label: Label) -> Label:
    """The replacement of ``label`` in this workspace, or ``label``."""
    return loader.workspace.toolchains.get(label, label)


def find_agent(loader: Loader, label: Label) -> Target:
    """The target of the agent ``label``. Raises UsageError(UNKNOWN_AGENT)."""
    problem = f"no agent {label.short}"
    try:
        found = loader.target(label)
    except UsageError as error:
        if error.reason not in _ABSENT:
            raise
    else:
        if _may_be_agent(loader, found):
            return found
        problem = f"{label.short} is not an agent: its kind is '{found.kind}'"
    aliases = loader.workspace.agents
    if alias := next((name for name, target in aliases.items() if target == label), None):
        where = loader.workspace.position(_AGENTS, alias)
        raise LoadError(Reason.UNKNOWN_AGENT, f"[{_AGENTS}] {alias}: {problem}", position=where)
    known = list(aliases)
    parent, _, last = label.package.rpartition("/")
    meant = Label(_AGENTS, label.name) if label.package == AGENTS_PACKAGE else Label(parent, last)
    if loader.has_package(label.package):
        targets = loader.package(label.package).targets
        known.extend(name for name, target in targets.items() if _may_be_agent(loader, target))
    raise UsageError(
        Reason.UNKNOWN_AGENT,
        problem,
        hint=suggest(label.name, known)
        or (f"did you mean '{meant.short}'?" if _declares(loader, meant) else "")
        or f"agents: {', '.join(sorted(set(known))) or 'none'}",
    )


def _may_be_agent(loader: Loader, target: Target) -> bool:
    """Neither a toolchain nor a task; any other rule may provide an agent."""
    return target.kind != TOOLCHAIN.kind and not loader.rule(target).gates


def _declares(loader: Loader, label: Label) -> bool:
    """Whether there is a target of that name, such as ``//agents:mine``, not ``//agents/mine``."""
    found = loader.has_package(label.package)
    return found and loader.package(label.package).find(label.name) is not None


def _follow(loader: Loader, target: Target, label: Label, path: tuple[PathStep, ...]) -> Target:
    """The target behind an attribute; errors point at the attribute's line."""
    try:
        return loader.target(replaced(loader, label), target.position)
    except LoadError as error:
        if error.reason in _ABSENT and error.position == target.position:
            error.position = loader.position(target, *path)
        raise


def _fill(
    loader: Loader, target: Target, template: str, platform: str, path: tuple[PathStep, ...]
) -> Label:
    """A label with ``{platform}``, which is a default or declared, on one platform."""
    found = _existing(loader, target, template, platform)
    if found is not None:
        return found
    platforms = loader.platforms.names()
    there = [name for name in platforms if _existing(loader, target, template, name)]
    known = platform in platforms
    raise AnalysisError(
        Reason.NO_TOOLCHAIN if known else Reason.UNKNOWN_PLATFORM,
        f"{target.label.short} needs {template}, which does not exist for platform '{platform}'",
        position=loader.position(target, *path),
        hint=suggest(platform, there) or f"platforms that have it: {', '.join(there) or 'none'}",
    )


def _existing(loader: Loader, target: Target, template: str, platform: str) -> Label | None:
    try:
        label = Label.parse(template.replace(PLATFORM, platform), package=target.label.package)
    except UsageError:  # the platform's name is not valid in a label
        return None
    actual = replaced(loader, label)
    if not loader.has_package(actual.package):
        return None
    return label if loader.package(actual.package).find(actual.name) else None
