"""Short ways to declare actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kabuild.model.action import (
    VERDICT_FILE,
    Action,
    Artifact,
    Limits,
    Literal,
    Resources,
    Toolchain,
)
from kabuild.model.label import Label
from kabuild.model.platform import Platform

DEFAULT_LIMITS = Limits()
ONE_CPU = Resources()
CPU = Platform("cpu", (("arch", "x86_64"),))


def command(
    name: str,
    *argv: str,
    inputs: Mapping[str, Artifact] | None = None,
    outputs: Iterable[str] = ("result",),
    gate: str = "",
    requires: Iterable[Action] = (),
    env: Mapping[str, str] | None = None,
    toolchains: Iterable[Toolchain] = (),
    limits: Limits = DEFAULT_LIMITS,
    resources: Resources = ONE_CPU,
    platform: Platform = CPU,
    mnemonic: str = "Run",
) -> Action:
    """An action ``//t:NAME``; by default one that differs from others by its name."""
    default: dict[str, Artifact] = {"name": Literal(name.encode())}
    return Action(
        label=Label("t", name),
        argv=argv or ("run", name),
        inputs=tuple((default if inputs is None else inputs).items()),
        outputs=tuple(outputs),
        platform=platform,
        env=tuple((env or {}).items()),
        toolchains=tuple(toolchains),
        limits=limits,
        mnemonic=mnemonic,
        gate=gate,
        requires=tuple(action.label for action in requires),
        resources=resources,
    )


def gate(name: str, *argv: str, outputs: Iterable[str] = (), **rest: object) -> Action:
    """A gate ``//t:NAME`` whose gate is called like the last part of its name."""
    outputs = (VERDICT_FILE, *outputs)
    kind = name.rpartition(".")[2]
    return command(name, *argv, outputs=outputs, gate=kind, **rest)  # type: ignore[arg-type]
