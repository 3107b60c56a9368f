"""Targets to actions: every rule is called once, dependencies first. Nothing runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kabuild.analysis.configure import AGENT, Configured, Edge, configure, replaced
from kabuild.analysis.result import Analysis, AnalyzedTarget
from kabuild.base.errors import (
    AnalysisError,
    InternalError,
    KabuildError,
    LoadError,
    Position,
    Reason,
    ToolchainError,
    described,
)
from kabuild.loading.loader import Loader
from kabuild.loading.rule_failure import failure_position
from kabuild.loading.toolchain_rule import TOOLCHAIN
from kabuild.model.action import Toolchain
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.options import Options
from kabuild.model.target import Target
from kabuild.rule.attr import AttributeProblem
from kabuild.rule.context import Context, Provider
from kabuild.rule.rule import Rule
from kabuild.toolchain.declaration import Declaration
from kabuild.toolchain.resolution import resolve as resolve_here


class Resolve(Protocol):
    """Finds a declared toolchain: ``kabuild.toolchain.resolve``, or a caching form of it."""

    def __call__(
        self,
        declaration: Declaration,
        *,
        name: str,
        fetch: bool = True,
        secrets: tuple[str, ...] = (),
    ) -> Toolchain:
        """The toolchain, under ``name``; fetched if ``fetch``. Raises ToolchainError.

        Nothing is fetched for an action if one of its ``secrets`` is missing.
        """
        ...


def analyze(
    loader: Loader,
    requested: Sequence[Label],
    options: Options,
    *,
    resolve: Resolve = resolve_here,
) -> Analysis:
    """Turn the requested targets and all their dependencies into a graph.

    Raises LoadError and AnalysisError with a position; ToolchainError for a toolchain that an
    action needs. A rule that fails is a LoadError(BAD_RULE) with its line, or an InternalError if
    it ships with kabuild.
    """
    analyzer = _Analyzer(loader, options, resolve)
    owners: dict[Label, Label] = {}
    for label in requested:
        target = loader.target(label)
        owners[label] = target.label
        analyzer.visit(target)
    actions = [action for done in analyzer.done.values() for action in done.actions]
    return Analysis(ActionGraph.of(actions), tuple(requested), analyzer.done, owners)


_NOT_HERE = frozenset({Reason.NO_TOOLCHAIN, Reason.NOT_LOCKED, Reason.TOOLCHAIN_DRIFT})
"""Why an optional toolchain counts as absent."""


@dataclass
class _Frame:
    """A target whose dependencies are being visited; ``edge`` is the one taken last."""

    configured: Configured
    rest: Iterator[Edge]
    edge: Edge | None = None


class _Analyzer:
    """One analysis. ``done`` fills up with dependencies before dependents."""

    def __init__(self, loader: Loader, options: Options, resolve: Resolve) -> None:
        self.done: dict[Label, AnalyzedTarget] = {}
        self._loader = loader
        self._options = options
        self._resolve = resolve
        self._providers: dict[Label, Mapping[type[Provider], Provider]] = {}
        self._toolchains: dict[tuple[Label, tuple[str, ...]], Toolchain] = {}

    def visit(self, root: Target) -> None:
        """Depth-first, without recursion: chains may be longer than Python's stack."""
        if root.label in self.done:
            return
        stack = [self._enter(root)]
        on_stack = {root.label}
        while stack:
            frame = stack[-1]
            frame.edge = next((e for e in frame.rest if e.target.label not in self.done), None)
            if frame.edge is None:
                stack.pop()
                on_stack.remove(frame.configured.target.label)
                self._call_rule(frame.configured)
                continue
            target = frame.edge.target
            if target.label in on_stack:
                raise self._cycle(stack, target.label)
            on_stack.add(target.label)
            stack.append(self._enter(target))

    def _enter(self, target: Target) -> _Frame:
        options = self._options
        configured = configure(self._loader, target, options.platform.name, options.agent)
        return _Frame(configured, iter(configured.edges))

    def _cycle(self, stack: Sequence[_Frame], again: Label) -> AnalysisError:
        labels = [frame.configured.target.label for frame in stack]
        loop = stack[labels.index(again) :]
        target, edge = loop[0].configured.target, loop[0].edge
        path = () if edge is None or edge.path == (AGENT,) else edge.path
        names = [frame.configured.target.label.short for frame in loop]
        return AnalysisError(
            Reason.CYCLE,
            "targets depend on each other: " + " -> ".join([*names, names[0]]),
            position=self._loader.position(target, *path),
        )

    def _call_rule(self, configured: Configured) -> None:
        """Call the rule of a target whose dependencies are done."""
        target = configured.target
        rule = self._loader.rule(target)
        context = Context(
            target,
            self._options,
            providers=lambda label: self._provided(configured, label),
            toolchains=lambda label, secrets: self._toolchain(target, label, secrets=secrets),
            toolchains_here=lambda label: self._toolchain_here(target, label),
            platform_spec=lambda: self._loader.platforms.spec(self._options.platform.name),
            peaks=self._loader.platforms.peaks,
        )
        try:
            rule.implement(context)
        except AttributeProblem as problem:
            raise LoadError(
                problem.reason,
                problem.message,
                position=self._loader.position(target, *problem.path),
                hint=problem.hint,
            ) from None
        except KabuildError as error:
            error.position = error.position or target.position
            raise
        except (KeyboardInterrupt, MemoryError):  # neither is the rule's fault
            raise
        except BaseException as error:  # SystemExit, too: it would look like success
            raise self._bad_rule(target, described(error), error) from error
        self._check_actions(context, rule)
        gates = tuple(
            (gate, action.label)
            for gate in rule.gates
            for action in context.actions
            if target.label.sub(gate.name) == action.label.in_trial(1)
        )
        self._providers[target.label] = context.provided
        self.done[target.label] = AnalyzedTarget(target, tuple(context.actions), gates)

    def _check_actions(self, context: Context, rule: Rule) -> None:
        """A rule declares actions for its own sub-targets, one each."""
        target = context.target
        allowed = set(target.labels())
        declared: set[Label] = set()
        gates = {target.label.sub(gate.name) for gate in rule.gates}
        for action in context.actions:
            part = action.label.in_trial(1)
            if part not in allowed or action.label in declared:
                raise self._bad_rule(
                    target, f"it declares {action.label}, which is not a declared sub-target"
                )
            if bool(action.gate) != (part in gates):
                is_gate = "a gate" if action.gate else "no gate"
                raise self._bad_rule(
                    target, f"{action.label} is {is_gate}, but its rule declares otherwise"
                )
            declared.add(action.label)

    def _provided(self, configured: Configured, label: Label) -> Mapping[type[Provider], Provider]:
        """What a dependency provides; empty if ``label`` is not a dependency."""
        found = configured.find(label)
        return self._providers[found.label] if found else {}

    def _toolchain_here(self, target: Target, label: Label) -> Toolchain | None:
        """The toolchain ``label``, if this machine has it as it is pinned.

        One that is missing or has changed ends no build that does not use it: what needs it is
        then absent, and 'kabuild toolchain list' says why.
        """
        try:
            return self._toolchain(target, label, fetch=False)
        except ToolchainError as error:
            if error.reason in _NOT_HERE:
                return None
            raise

    def _toolchain(
        self, target: Target, label: Label, *, fetch: bool = True, secrets: tuple[str, ...] = ()
    ) -> Toolchain:
        """The toolchain ``label``, under the name that the rule uses."""
        if (label, secrets) not in self._toolchains:
            found = self._loader.target(replaced(self._loader, label), target.position)
            if found.kind != TOOLCHAIN.kind:
                raise AnalysisError(
                    Reason.NO_TOOLCHAIN,
                    f"{target.label.short} asks for the toolchain {label.short}, "
                    f"and {found.label.short} is a {found.kind}",
                    position=target.position,
                )
            declaration = Declaration.of(found)
            self._check_platform(target, declaration)
            self._toolchains[label, secrets] = self._resolve(
                declaration, name=label.name, fetch=fetch, secrets=secrets
            )
        return self._toolchains[label, secrets]

    def _check_platform(self, target: Target, declaration: Declaration) -> None:
        platform = self._options.platform.name
        if not declaration.supports(platform):
            raise AnalysisError(
                Reason.NO_TOOLCHAIN,
                f"{target.label.short} needs {declaration.label.short}, "
                f"which does not support platform '{platform}'",
                position=declaration.position,
                hint=f"it is for: {', '.join(declaration.platforms)}",
            )

    def _bad_rule(
        self, target: Target, message: str, error: BaseException | None = None
    ) -> LoadError | InternalError:
        """The rule's author has to fix this, so the position is a line of the rule."""
        file, root = self._loader.rules.file(target.kind), self._loader.workspace.root
        position = Position(str(file)) if file else target.position
        if error is not None and file:
            position = failure_position(error, self._loader.rules.roots, file)
        own = file is not None and file.is_relative_to(root)
        return (LoadError if own else InternalError)(
            Reason.BAD_RULE,
            f"rule '{target.kind}' fails: {message}",
            position=position,
            hint=f"called for {target.label.short} ({target.position})",
        )
