"""The context of a rule while it turns one target into actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
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
    Output,
    Resources,
    Source,
    Toolchain,
)
from kabuild.model.label import Label, repository_of
from kabuild.model.options import Options
from kabuild.model.platform import CPU_SPEC, PLATFORMS, Platform, PlatformSpec
from kabuild.model.target import Target

_ARTIFACTS = (Source, Output, Literal)


@dataclass(frozen=True)
class Provider:
    """Base of all providers: information from a target for its dependents.

    A provider is a frozen dataclass; a rule gives at most one of each type. Families of rules
    define their own beside their rules.
    """


P = TypeVar("P", bound=Provider)
Lookup = Callable[[Label], Mapping[type[Provider], Provider]]

SANDBOX_KIT = ("limits.py", "namespaces.py", "rootfs.py", "seccomp.py")
"""Modules of ``kabuild/sandbox`` that put a child process into its own sandbox."""

SUPERVISION = ("collect.py", "output.py", "process_tree.py", "protocol.py", "supervisor.py")
"""Further modules that run a command in it, watch its processes and take its output."""


class Context:
    """One target with its dependencies and actions.

    A rule reads attributes and providers, and calls ``action``, ``gate`` and ``provide``. It opens
    no files and starts no processes.
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
        peaks: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
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
        self._peaks = peaks

    @property
    def platform_spec(self) -> PlatformSpec:
        """The declaration of the build's platform, such as its architectures."""
        return self._platform_spec()

    @property
    def peaks(self) -> Mapping[str, Mapping[str, Any]]:
        """By architecture, the published peaks of one GPU, whatever the build's platform is."""
        return self._peaks()

    def trial(self, number: int) -> Context:
        """The same target, ``number`` times over: its sub-targets are called ``part#number``.

        Its actions and providers belong to this target; the first trial is the target itself.
        """
        if number == 1:
            return self
        other = copy(self)
        other.number = number
        other.label = self.label.in_trial(number)
        return other

    def toolchain(self, label: str | Label, *, secrets: tuple[str, ...] = ()) -> Toolchain:
        """The toolchain of a label in this workspace.

        ``secrets`` are those of all actions that use it: if one is missing, no such action can run,
        so nothing is fetched. Raises ToolchainError if it is missing or differs from its pin.
        """
        parsed = label if isinstance(label, Label) else Label.parse(label)
        return self._toolchains(parsed, secrets)

    def toolchain_here(self, label: Label) -> Toolchain | None:
        """The toolchain if this machine has it as it is pinned; None if not.

        For optional toolchains, which not every build should fetch or depend on.
        """
        return self._toolchains_here(label)

    def provider(self, label: Label, kind: type[P]) -> P:
        """A provider of the target ``label``, which must be a label attribute of this one.

        Raises AnalysisError(NO_PROVIDER) if it has no such provider.
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

    def platform_file(self, path: str) -> Source:
        """A file or directory of the directory that declares the build's platform.

        Such as ``architectures.toml``. ``cpu`` has no directory.
        """
        spec = self.platform_spec
        return Source(f"{PLATFORMS}/{spec.name}/{path}", spec.root)

    def sandbox_kit(self, below: str, *, supervision: bool = False) -> Mapping[str, Source]:
        """The modules with which an action puts its own children into sandboxes, below ``below``.

        For the ``inputs`` of an action that is ``nestable``: ``namespaces`` is the one to import.
        They need the standard library only. With ``supervision``, also those that run a command
        and watch its processes, of which ``supervisor`` is the one to import.
        """
        names = (*SANDBOX_KIT, *SUPERVISION) if supervision else SANDBOX_KIT
        return {f"{below}/{name}": Source(f"sandbox/{name}", "kabuild") for name in names}

    def package_file(self, path: str) -> Source:
        """A file or directory of this target's package, by its path in the package."""
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

        ``inputs`` maps paths below the working directory to artifacts; ``outputs`` are paths below
        ``out/``. ``platform`` replaces the build's if other properties can change the result.
        Raises ``TypeError`` for an input of another type, such as an attribute that is not given.
        """
        for path, item in inputs.items():
            if not isinstance(item, _ARTIFACTS):
                raise TypeError(f"the input '{path}' is {item!r}, not a source, output or literal")
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
        """Declare a gate: an action that always writes ``out/verdict.json``."""
        return self.action(
            part,
            argv=argv,
            inputs=inputs,
            outputs=(VERDICT_FILE, *outputs),
            gate=part,
            **rest,
        )

    def provide(self, provider: Provider) -> None:
        """Provide information to the targets that depend on this one."""
        self.provided[type(provider)] = provider
