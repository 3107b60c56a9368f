"""Differences between this machine and that of a bundle that can change results."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from kabuild.bundle.difference import difference
from kabuild.execution.inputs import TOOLCHAINS
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.platform import Platform
from kabuild.store.merkle import Directory


@dataclass(frozen=True)
class EnvironmentDifference:
    """Why other bytes and times of a rerun prove nothing about the published ones.

    Attributes:
        text: what is another one here than there.
        remedies: how to get what was there, as far as that is known.
        in_key: whether a key would say so; then equal bytes prove nothing, either.
    """

    text: str
    remedies: tuple[str, ...] = ()
    in_key: bool = True


def other_processor(then: str, here: str) -> EnvironmentDifference | None:
    """The difference in vector instructions, which may change last digits and is not in the key."""
    if not then or then == here:
        return None
    return EnvironmentDifference(
        f"its processor was {then}, this is {here or 'another'}", in_key=False
    )


def find_environment_difference(
    action: Action,
    root: Directory,
    here: Platform,
    get: Callable[[Digest], bytes],
    *,
    first: Collection[str] = (),
) -> EnvironmentDifference | None:
    """The toolchains that differ on this machine; if none does, the platform's differences.

    ``root`` is the action's input root, in which the fingerprints of its toolchains lie, and
    ``get`` has its files. ``first`` are distributions to name first. Raises whatever ``get``
    raises.
    """
    recorded = {path: node.digest for path, node in root.walk() if path.startswith(TOOLCHAINS)}
    texts, remedies = [], []
    for toolchain in action.toolchains:
        digest = recorded.get(f"{TOOLCHAINS}/{toolchain.name}.json")
        if digest is None:
            texts.append(f"toolchain {toolchain.name} is not in the key")
        elif digest != Digest.of(toolchain.fingerprint):
            found = difference(toolchain.name, get(digest), toolchain.fingerprint, first=first)
            texts.append(f"toolchain {toolchain.name} differs on this machine: {found.text}")
            remedies += [f"{toolchain.name}: {found.remedy}"] if found.remedy else []
    if texts:
        return EnvironmentDifference("; ".join(texts), tuple(remedies))
    return _of_platform(action.platform, here)


def _of_platform(then: Platform, here: Platform) -> EnvironmentDifference | None:
    if then.name not in {here.name, "cpu"}:
        return EnvironmentDifference(f"it ran on {then}, this is {here}")
    for name, value in then.properties:
        if then.name == here.name and here.get(name) != value:
            return EnvironmentDifference(
                f"{name} was {value}, here it is {here.get(name) or 'unknown'}"
            )
    return None
