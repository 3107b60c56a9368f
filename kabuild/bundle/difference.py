"""How two toolchains of one name differ, by their fingerprints, and how to get the other."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.listing import abridged

_LONGEST = 48
_PLAIN = re.compile(r"[A-Za-z0-9_.+!-]+( [A-Za-z0-9_.+!-]+)?")
_WHEELS = "https://download.pytorch.org/whl/"
"""The indexes of PyTorch's builds, such as 2.13.0+cpu, which PyPI lacks."""
_OF_PYTORCH = re.compile(r"(py)?torch.*")
_BUILD = re.compile(r"\+((?!git)[a-z]+[\d.]*)$")
_MACHINE = {"python": "Python", "libc": "", "platform": "", "implementation": ""}
"""Of an environment's fingerprint what pip does not change, and what to call it."""

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """What differs, in a line; and ``remedy``, how to get what was there."""

    text: str
    remedy: str


def difference(name: str, then: bytes, here: bytes, *, first: Collection[str] = ()) -> Difference:
    """Between fingerprints of the toolchain ``name``; ``first`` are distributions to name first.

    ``then`` may come from anyone, so only plain names and versions of it are repeated.
    """
    old, new = _fields(then), _fields(here)
    kind = old.get("kind")
    pinned = "the toolchains/lock.toml of the revision that it was published with"
    if kind != new.get("kind"):
        return Difference(_pair("kind", kind, new.get("kind")), pinned)
    if kind == "environment":
        return _of_environments(old, new, first)
    if kind == "distribution":
        found = _of_distribution(old, new)
        return Difference(found or _pair("", old.get("platform"), new.get("platform")), pinned)
    if kind == "local":
        again = f"kabuild toolchain pin {name} --from DIR, with the same installation in DIR"
        return Difference("the adopted files have other content", again)
    return Difference("other files are pinned", pinned)


def _of_environments(old: Fields, new: Fields, first: Collection[str]) -> Difference:
    """Two Pythons with what is installed in them."""
    machine = [key for key in _MACHINE if old.get(key) != new.get(key)]
    before, after = _distributions(old), _distributions(new)
    names = sorted(before.keys() | after.keys(), key=lambda name: (name not in first, name))
    found = {name: _of_distribution(before.get(name, {}), after.get(name, {})) for name in names}
    texts = [_pair(_MACHINE[key], old.get(key), new.get(key)) for key in machine]
    texts += filter(None, found.values())
    # Another interpreter has its own environment, which begins with nothing installed.
    pins = {
        name: _plain(before[name].get("version"))
        for name in sorted(before.keys() & after.keys())
        if machine or found[name]
    }
    needed = [f"{_MACHINE[key]} {_plain(old.get(key))}".strip() for key in machine]
    remedy = "; ".join(filter(None, (", ".join(filter(None, needed)), _install(pins))))
    return Difference(abridged(texts), remedy)


def _install(pins: Mapping[str, str]) -> str:
    """The command. It names nothing that is not installed here: a bundle is anybody's."""
    wanted = [f"{name}=={version}" for name, version in pins.items() if version]
    if not wanted:
        return ""
    versions = [version for name, version in pins.items() if _OF_PYTORCH.fullmatch(name)]
    builds = sorted({match[1] for version in versions if (match := _BUILD.search(version))})
    indexes = [f"--extra-index-url={_WHEELS}{build}" for build in builds]
    return " ".join(["pip install --force-reinstall --no-deps", *indexes, *wanted])


def _of_distribution(old: Fields, new: Fields) -> str:
    """Such as ``numpy 2.3.5 there, 2.4.0 here``; empty if both are one."""
    name = _plain(new.get("name") or old.get("name"))
    if old.get("version") != new.get("version"):
        return _pair(name, old.get("version"), new.get("version"))
    if old.get("record") != new.get("record"):
        return f"{name} {_plain(new.get('version'))}, a different build"
    return ""


def _pair(name: str, then: Any, now: Any) -> str:
    return f"{name} {_plain(then) or 'none'} there, {_plain(now) or 'none'} here".lstrip()


def _distributions(fields: Fields) -> dict[str, Fields]:
    items = fields.get("distributions")
    known = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {name: item for item in known if (name := _plain(item.get("name")))}


def _fields(fingerprint: bytes) -> Fields:
    try:
        value = bounded_json(fingerprint)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> str:
    """A name or version as such; empty for all else, which a terminal might take for commands."""
    text = value if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST and _PLAIN.fullmatch(text) else ""
