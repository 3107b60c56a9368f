"""A toolchain as actions see it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Toolchain:
    """Tools by role, pinned by content.

    ``fingerprint`` (canonical JSON) is in the key of every action that uses the toolchain;
    where its files lie on this machine is not: equal content is the same toolchain.

    Attributes:
        name: what ``${toolchain:NAME}`` in an argv stands for.
        role: what rules ask for, such as ``python`` or ``hip-compiler``.
        fingerprint: what the content is, and which kinds of it.
        home: absolute host path that replaces the token.
        mounts: absolute host directories that the sandbox shows, read-only.
    """

    name: str
    role: str
    fingerprint: bytes
    home: str = field(compare=False)
    mounts: tuple[str, ...] = field(compare=False, default=())
