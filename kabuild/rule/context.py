"""What a rule sees while it turns one target into actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeVar

from kabuild.base.canonical import canonical_json
from kabuild.base.errors import AnalysisError, Reason
from kabuild.model.action import (
    VERDICT_FILE,
    Action,
    Artifact,
    Limits,
    Literal,
    Name,
    Resources,
    Source,
    Toolchain,
)
from kabuild.model.label import Label, repository_of
from kabuild.model.options import Options
from kabuild.model.platform import CPU_SPEC, Platform, PlatformSpec
from kabuild.model.target import Target
from kabuild.rule.provider import Provider

P = TypeVar("P", bound=Provider)
Lookup = Callable[[Label], Mapping[type[Provider], Provider]]

SANDBOX_KIT = ("limits.py", "namespaces.py", "rootfs.py", "seccomp.py")
"""Of ``kabuild/sandbox``: what puts a child process into a sandbox of its own."""

SUPERVISION = ("collect.py", "output.py", "process_tree.py", "protocol.py", "supervisor.py")
"""What besides runs a command in it, watches its processes and takes its output."""


class Context:
    """One target, what it depends on, and where its actions go.

    A rule reads attributes and providers, and calls ``action``, ``gate`` and ``provide``.
    It opens no file and starts nothing.
    """

    def __init__(
        self,
        target: Target,
        options: Options,
        providers: Lookup,
        toolchains: Callable[[Label, tuple[str, ...]], Toolchain],
        toolchains_here: Callable[[Label], Toolchain | None],
        *,
        platform_spec: Callable[[], PlatformSpec] = lambda: CPU_SPEC,
    ) -> None:
        self.target = target
        self.label = target.label
        self.attrs = target.attrs
        self.options = options
        self.platform = options.platform
        self.actions: list[Action] = []
        self.provided: dict[type[Provider], Provider] = {}
        self.number = 1
        self._providers = providers
        self._toolchains = toolchains
        self._toolchains_here = toolchains_here
        self._platform_spec = platform_spec

    @property
    def platform_spec(self) -> PlatformSpec:
        """What the build's platform declares: its architectures, for one."""
        return self._platform_spec()

    def trial(self, number: int) -> Context:
        """The same target, ``number`` times over: its sub-targets are called ``part#number``.

        What it declares and provides is this target's; the first trial is the target itself.
        """
        if number == 1:
            return self
        other = copy(self)
        other.number = number
        other.label = self.label.in_trial(number)
        return other

    def toolchain(self, label: str | Label, *, secrets: tuple[str, ...] = ()) -> Toolchain:
        """The toolchain that a label stands for in this workspace.

        All actions that use it name ``secrets``: where the user lacks one of these, none of them
        can run, and it is not fetched for them. Raises ToolchainError when it is missing or is
        not what was pinned.
        """
        parsed = label if isinstance(label, Label) else Label.parse(label)
        return self._toolchains(parsed, secrets)

    def toolchain_here(self, label: Label) -> Toolchain | None:
        """The toolchain where this machine has it; None where it would have to be fetched first.

        For optional toolchains: otherwise every build would fetch them. Raises
        ToolchainError when it is not what was pinned.
        """
        return self._toolchains_here(label)

    def provider(self, label: Label, kind: type[P]) -> P:
        """What the target ``label`` provides. It has to be a label attribute of this one.

        Raises AnalysisError(NO_PROVIDER) when it provides something else.
        """
        found = self._providers(label).get(kind)
        if not isinstance(found, kind):
            raise AnalysisError(
                Reason.NO_PROVIDER,
                f"{label.short} does not provide {kind.__name__}, which {self.label.short} needs",
                position=self.target.position,
            )
        return found

    def builtin(self, path: str) -> Source:
        """A file or directory that ships with kabuild, such as ``rules/harness/tools``."""
        return Source(path, "builtin")

    def sandbox_kit(self, below: str, *, supervision: bool = False) -> Mapping[str, Source]:
        """The modules with which an action puts its own children into sandboxes, below ``below``.

        For the ``inputs`` of an action that is ``nestable``: ``namespaces`` is the one to import.
        They need the standard library only. With ``supervision``, also those that run a command
        and watch its processes, of which ``supervisor`` is the one to import.
        """
        names = (*SANDBOX_KIT, *SUPERVISION) if supervision else SANDBOX_KIT
        return {f"{below}/{name}": Source(f"sandbox/{name}", "kabuild") for name in names}

    def package_file(self, path: str) -> Source:
        """A file or directory of this target's own package, by its path in there."""
        package = self.label.package
        if repository := repository_of(package):
            return Source(f"{package.partition('/')[2]}/{path}", f"@{repository}")
        return Source(f"{package}/{path}" if package else path)

    def literal(self, value: Any) -> Literal:
        """A value as a canonical JSON file."""
        return Literal(canonical_json(value))

    def text(self, text: str) -> Literal:
        """A text file."""
        return Literal(text.encode())

    def action(
        self,
        part: str,
        *,
        argv: tuple[str, ...],
        inputs: Mapping[str, Artifact],
        outputs: tuple[str, ...],
        mnemonic: str,
        toolchains: tuple[Toolchain, ...] = (),
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        resources: Resources | None = None,
        requires: tuple[Action, ...] = (),
        preload: tuple[str, ...] = (),
        nestable: bool = False,
        gate: str = "",
        platform: Platform | None = None,
        network: bool = False,
        secrets: tuple[str, ...] = (),
        facts: str = "",
        journal: bool = False,
        sandboxed: bool = False,
        names: tuple[Name, ...] = (),
        advice: str = "",
    ) -> Action:
        """Declare the action of the sub-target ``part``, which is one of the rule's.

        ``inputs`` maps paths below the working directory to artifacts; ``outputs`` are
        paths below ``out/``. ``platform`` replaces the build's where less (or more) of it
        can change the result.
        """
        action = Action(
            label=self.label.sub(part) if part else self.label,
            argv=argv,
            inputs=tuple(inputs.items()),
            outputs=outputs,
            platform=platform or self.platform,
            env=tuple((env or {}).items()),
            toolchains=toolchains,
            limits=limits or Limits(),
            mnemonic=mnemonic,
            gate=gate,
            requires=tuple(required.label for required in requires),
            resources=resources or Resources(),
            preload=preload,
            nestable=nestable,
            network=network,
            secrets=secrets,
            facts=facts,
            journal=journal,
            sandboxed=sandboxed,
            names=names,
            advice=advice,
        )
        self.actions.append(action)
        return action

    def gate(
        self,
        part: str,
        *,
        argv: tuple[str, ...],
        inputs: Mapping[str, Artifact],
        outputs: tuple[str, ...] = (),
        **rest: Any,
    ) -> Action:
        """Declare a gate: an action that writes ``out/verdict.json`` whatever it finds."""
        return self.action(
            part,
            argv=argv,
            inputs=inputs,
            outputs=(VERDICT_FILE, *outputs),
            gate=part,
            **rest,
        )

    def provide(self, provider: Provider) -> None:
        """Tell something to the targets that depend on this one."""
        self.provided[type(provider)] = provider
