"""From an action to its key, the digest of REAPI messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kabuild.model.action import OUTPUT_ROOT, Action
from kabuild.model.digest import Digest
from kabuild.store import merkle

BASE_ENV: Mapping[str, str] = {
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}
"""What every action finds in its environment, unless it sets another value itself."""

PRELOADED = ("numpy", "torch", "torch._dynamo", "triton")
"""What may be preloaded for an action that a stranger declares."""

_OF_TOOLCHAIN = re.compile(r"\$\{toolchain:[^}]*\}(/(?!\.\.?(/|$))[^/]+)+")


@dataclass(frozen=True)
class Prepared:
    """An action whose inputs are known, ready to be looked up or run.

    Attributes:
        key: digest of ``message``.
        message: REAPI's ``Action``.
        command: REAPI's ``Command``.
        root: the content of its working directory.
        hermetic: false if the machine refused namespaces. It is part of the key, so that such
            results never mix with others.
        device: the lease of the device that it may use; not part of the key.
        remote: whether a worker of a fleet runs it; not part of the key.
        fresh: names one run that no cached result may stand for; else empty. Not part of the key.
    """

    action: Action
    key: Digest
    message: bytes
    command: bytes
    root: merkle.Directory
    hermetic: bool = True
    device: str = ""
    remote: bool = False
    fresh: str = ""


def prepare(action: Action, root: merkle.Directory, *, hermetic: bool = True) -> Prepared:
    """Compute the key of ``action`` with the input root ``root``."""
    platform = merkle.platform_message(_properties(action, hermetic=hermetic))
    command = merkle.command_message(
        action.argv,
        {**BASE_ENV, **dict(action.env)},
        (f"{OUTPUT_ROOT}/{path}" for path in action.outputs),
        platform,
    )
    message = merkle.action_message(
        Digest.of(command), root.digest, action.limits.timeout, platform
    )
    return Prepared(action, Digest.of(message), message, command, root, hermetic)


def _properties(action: Action, *, hermetic: bool) -> list[tuple[str, str]]:
    """The properties of the machine in the key, each of which can change the result."""
    limits = action.limits
    properties = [
        ("platform", action.platform.name),
        *((f"platform.{name}", value) for name, value in action.platform.properties),
        ("limits.memory", str(limits.memory)),
        ("limits.processes", str(limits.processes)),
        ("limits.scratch", str(limits.scratch)),
    ]
    if action.network:
        properties.append(("network", "host"))
    if action.secrets:
        properties.append(("secrets", ",".join(action.secrets)))
    return properties if hermetic else [*properties, ("hermetic", "false")]


def preload_of_stranger(
    names: Iterable[str], argv: Sequence[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """What may be preloaded for a command that a bundle or another machine declares.

    A warm interpreter runs outside of sandboxes, with the command's own environment: there a
    variable is enough to have it run any program (``PYTHONWARNINGS``, ``LD_PRELOAD``), and so is a
    path that leaves the toolchain. Preloading is no part of a key, and such a command runs cold.
    """
    usual = all(BASE_ENV.get(name) == value for name, value in env.items())
    ours = bool(argv) and _OF_TOOLCHAIN.fullmatch(argv[0]) is not None
    return tuple(name for name in names if name in PRELOADED) if usual and ours else ()
