"""``kabuild query``: sets of declared targets. No rule is called."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from kabuild.analysis.configure import Configured, configure
from kabuild.analysis.query_parser import Binary, Call, Expression, Word, parse_query
from kabuild.base.canonical import canonical_json
from kabuild.base.errors import Position
from kabuild.loading.loader import Loader
from kabuild.loading.patterns import expand
from kabuild.model.action import Source
from kabuild.model.label import Label

Labels = frozenset[Label]


@dataclass(frozen=True)
class Node:
    """One target or sub-target in the answer to a query.

    ``kind`` is, for example, ``hip2hip rule``, ``hip2hip gate`` or ``hip2hip part``; ``deps`` are
    the direct dependencies, whether in the answer or not.
    """

    label: Label
    kind: str
    position: Position
    attrs: Mapping[str, Any] = field(hash=False)
    tags: tuple[str, ...]
    deps: tuple[Label, ...]


def query(
    loader: Loader,
    text: str,
    *,
    package: str = "",
    platform: str = "cpu",
    agent: Label | None = None,
) -> tuple[Node, ...]:
    """The targets that ``text`` means, sorted by label.

    Patterns are relative to ``package`` and include targets tagged ``manual``. A sub-target
    depends on its target; a target on what its label attributes lead to on ``platform``,
    and, where it has gates, on ``agent``.

    Raises UsageError: BAD_QUERY with a caret, or what is wrong with a pattern.
    """
    evaluation = _Evaluation(loader, package, platform, agent)
    return tuple(evaluation.node(label) for label in sorted(evaluation.evaluate(parse_query(text))))


def query_labels(
    loader: Loader, text: str, *, package: str = "", agent: Label | None = None
) -> tuple[Label, ...]:
    """The labels that ``query`` finds; targets that it does not need are not loaded."""
    return tuple(sorted(_Evaluation(loader, package, "cpu", agent).evaluate(parse_query(text))))


class _Evaluation:
    """One query over the targets of one workspace."""

    def __init__(self, loader: Loader, package: str, platform: str, agent: Label | None) -> None:
        self._loader = loader
        self._package = package
        self._platform = platform
        self._agent = agent
        self._configured: dict[Label, Configured] = {}
        self._functions: Mapping[str, Callable[..., Labels]] = {
            "deps": self._deps,
            "rdeps": self._rdeps,
            "kind": self._kind,
            "attr": self._attr,
            "filter": self._filter,
            "tests": self._tests,
            "somepath": self._somepath,
            "allpaths": self._allpaths,
        }

    def evaluate(self, tree: Expression) -> Labels:
        """The labels that an expression selects."""
        if isinstance(tree, Word):
            return frozenset(expand(self._loader, [tree.text], package=self._package, manual=True))
        if isinstance(tree, Call):
            return self._functions[tree.function](*tree.arguments)
        chain: list[Binary] = []  # a loop: thousands of terms nest to the left
        while isinstance(tree, Binary):
            chain.append(tree)
            tree = tree.left
        found = self.evaluate(tree)
        for step in reversed(chain):
            right = self.evaluate(step.right)
            if step.operator == "+":
                found |= right
            else:
                found = found - right if step.operator == "-" else found & right
        return found

    def node(self, label: Label) -> Node:
        """What output formats show of one label."""
        target = self._target(label).target
        return Node(
            label=label,
            kind=self._kind_of(label),
            position=target.position,
            attrs={name: _plain(value) for name, value in target.attrs.items()},
            tags=target.tags,
            deps=tuple(sorted(self._next(label))),
        )

    def _target(self, label: Label) -> Configured:
        """The configured target of a label or of a sub-target's label."""
        target = self._loader.target(label)
        if target.label not in self._configured:
            self._configured[target.label] = configure(
                self._loader, target, self._platform, self._agent
            )
        return self._configured[target.label]

    def _next(self, label: Label) -> Labels:
        configured = self._target(label)
        if label != configured.target.label:
            return frozenset((configured.target.label,))
        return frozenset(edge.target.label for edge in configured.edges)

    def _kind_of(self, label: Label) -> str:
        target = self._target(label).target
        if label == target.label:
            return f"{target.kind} rule"
        rule = self._loader.rule(target)
        gates = {target.label.sub(gate.name) for gate in rule.gates}
        return f"{target.kind} {'gate' if label in gates else 'part'}"

    def _deps(self, of: Expression, depth: Word | None = None) -> Labels:
        return _closure(self.evaluate(of), self._next, depth)

    def _rdeps(self, universe: Expression, of: Expression, depth: Word | None = None) -> Labels:
        everything = _closure(self.evaluate(universe), self._next)
        found, parts = self._without_parts(self.evaluate(of), everything)
        return _closure(found & everything, self._reversed(everything), depth) | parts

    def _without_parts(self, labels: Labels, among: Labels) -> tuple[Labels, Labels]:
        """Labels with the whole target for each part that ``among`` lacks, and those parts.

        A target's dependents depend on its parts, which no package lists.
        """
        owners = {label: self._target(label).target.label for label in labels - among}
        parts = {part: whole for part, whole in owners.items() if part != whole and whole in among}
        return labels - parts.keys() | set(parts.values()), frozenset(parts)

    def _reversed(self, labels: Labels) -> Callable[[Label], Iterable[Label]]:
        dependents: dict[Label, set[Label]] = {}
        for label in labels:
            for dependency in self._next(label):
                dependents.setdefault(dependency, set()).add(label)
        return lambda label: dependents.get(label, ())

    def _kind(self, regex: Word, of: Expression) -> Labels:
        return self._matching(of, regex, self._kind_of)

    def _filter(self, regex: Word, of: Expression) -> Labels:
        return self._matching(of, regex, str)

    def _attr(self, name: Word, regex: Word, of: Expression) -> Labels:
        return self._matching(of, regex, lambda label: self._attr_text(label, name.text))

    def _matching(self, of: Expression, regex: Word, text: Callable[[Label], str | None]) -> Labels:
        pattern = re.compile(regex.text)
        found = ((label, text(label)) for label in self.evaluate(of))
        return frozenset(label for label, t in found if t is not None and pattern.search(t))

    def _attr_text(self, label: Label, name: str) -> str | None:
        """An attribute as text to search in; None if the target has no such attribute."""
        target = self._target(label).target
        if name in {"name", "tags"}:
            return target.label.name if name == "name" else _text(list(target.tags))
        value = _plain(target.attrs.get(name))
        return None if value is None else _text(value)

    def _tests(self, of: Expression) -> Labels:
        """The gates that ``kabuild test`` runs for labels."""
        found: set[Label] = set()
        for label in self.evaluate(of):
            target = self._target(label).target
            rule = self._loader.rule(target)
            whole = label == target.label
            parts = (gate.name for gate in rule.gates if gate.usual or not whole)
            gates = {target.label.sub(part) for part in parts}
            found.update(gates if whole else gates & {label})
        return frozenset(found)

    def _somepath(self, start: Expression, end: Expression) -> Labels:
        """The labels of one shortest path; none if there is no path."""
        starts = self.evaluate(start)
        ends, parts = self._without_parts(self.evaluate(end), _closure(starts, self._next))
        came_from: dict[Label, Label | None] = dict.fromkeys(sorted(starts))
        queue = deque(came_from)
        while queue:
            label = queue.popleft()
            if label in ends:
                last = sorted(p for p in parts if self._target(p).target.label == label)
                return frozenset((*_trace(label, came_from), *last[:1]))
            for dependency in sorted(self._next(label)):
                if dependency not in came_from:
                    came_from[dependency] = label
                    queue.append(dependency)
        return frozenset()

    def _allpaths(self, start: Expression, end: Expression) -> Labels:
        """The labels of all paths."""
        reachable = _closure(self.evaluate(start), self._next)
        ends, parts = self._without_parts(self.evaluate(end), reachable)
        return _closure(ends & reachable, self._reversed(reachable)) | parts


def _closure(
    start: Labels, following: Callable[[Label], Iterable[Label]], depth: Word | None = None
) -> Labels:
    """``start`` and all that is reachable from it, in at most ``depth`` steps if given."""
    found = set(start)
    layer, steps = set(start), int(depth.text) if depth else -1
    while layer and steps:
        layer = {label for one in layer for label in following(one)} - found
        found |= layer
        steps -= 1
    return frozenset(found)


def _trace(label: Label, came_from: Mapping[Label, Label | None]) -> list[Label]:
    path = [label]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    return path


def _plain(value: Any) -> Any:
    """An attribute's value as JSON can hold it."""
    if isinstance(value, Label):
        return str(value)
    if isinstance(value, Source):
        return value.path
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    is_plain = value is None or isinstance(value, str | int)
    return value if is_plain or (isinstance(value, float) and isfinite(value)) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return canonical_json(value).decode().strip()
