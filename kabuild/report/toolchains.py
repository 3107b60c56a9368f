"""The toolchains of an evaluation, from the fingerprints in its actions' inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.bundle.manifest import Record
from kabuild.execution.inputs import TOOLCHAINS
from kabuild.model.digest import Digest
from kabuild.store.trees import read_directory


@dataclass(frozen=True, order=True)
class UsedToolchain:
    """One toolchain of an evaluation.

    Attributes:
        name: its name in actions: ``python``, ``zig``.
        version: such as ``ziglang 0.17.0``; for an adopted tree, the number of its files.
        digest: SHA-256 of its fingerprint, as ``kabuild toolchain show`` has it.
        parts: of an environment, such as ``torch 2.13.0``.
    """

    name: str
    version: str
    digest: str
    parts: tuple[str, ...] = ()


def used_toolchains(
    records: Iterable[Record], get: Callable[[Digest], bytes]
) -> tuple[UsedToolchain, ...]:
    """The toolchains, unique by name. Raises whatever ``get`` raises."""
    found = {
        (name, digest.hash): digest
        for root in {record.root for record in records if record.toolchains}
        for name, digest in _fingerprints(root, get)
    }
    return tuple(sorted(_read(name, digest, get) for (name, _), digest in found.items()))


def _fingerprints(root: Digest, get: Callable[[Digest], bytes]) -> Iterator[tuple[str, Digest]]:
    for path, node in read_directory(root, get).walk():
        folder, _, file = path.rpartition("/")
        if folder == TOOLCHAINS:
            yield file.removesuffix(".json"), node.digest


def _read(name: str, digest: Digest, get: Callable[[Digest], bytes]) -> UsedToolchain:
    try:
        said = bounded_json(get(digest))
    except ValueError:
        said = None
    known = said if isinstance(said, dict) else {}
    return UsedToolchain(name, _version(known), digest.hash, tuple(_parts(known)))


def _version(said: Mapping[str, Any]) -> str:
    if said.get("kind") == "environment":
        return f"Python {said.get('python')} ({said.get('platform')}, {said.get('libc')})"
    if said.get("version"):
        return f"{said.get('name')} {said['version']}"
    files = said.get("files")
    count = len(files) if isinstance(files, list) else files
    return f"{count} file{'' if count == 1 else 's'}" if isinstance(count, int) else "unknown"


def _parts(said: Mapping[str, Any]) -> Iterator[str]:
    distributions = said.get("distributions")
    for item in distributions if isinstance(distributions, list) else ():
        if isinstance(item, dict):
            yield f"{item.get('name')} {item.get('version')}"
