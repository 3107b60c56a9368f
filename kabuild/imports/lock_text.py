"""The text of a lock: TOML with one fact a line, so that diffs are small."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kabuild.imports.adapter import Adapter, Listed
from kabuild.loading.import_lock import SCHEMA

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = """\
# What the tasks of a benchmark are. Written by `kabuild import`; not to be edited.
"""
Facts = Mapping[str, Any]
"""What a capture found: ``attrs`` and ``origin``, or ``left_out``."""


def lock_text(
    adapter: Adapter,
    commit: str,
    tasks: Iterable[tuple[Listed, Mapping[str, str], Facts]],
) -> str:
    """The lock of a repository: each task with the SHA-256 of its files, and its facts."""
    head = [f"schema = {SCHEMA}", f"adapter = {toml(adapter.digest)}", f"commit = {toml(commit)}"]
    terms = adapter.terms
    head += ["", "[terms]", f"licence = {toml(terms.licence)}"]
    head += [f"redistribute = {toml(terms.redistribute)}", f"note = {toml(terms.note)}"]
    parts = (_task(*task) for task in tasks)
    return _HEAD + "\n".join(head) + "\n" + "".join(parts)


def _task(task: Listed, files: Mapping[str, str], facts: Facts) -> str:
    lines = ["", "[[task]]", f"name = {toml(task.name)}", f"files = {toml(files)}"]
    if absent := facts.get("left_out"):
        lines.append(f"left_out = {toml(absent)}")
        return "\n".join(lines) + "\n"
    lines += [f"origin = {toml(facts['origin'])}", f"kind = {toml(facts.get('kind', 'call'))}"]
    lines += [f"tags = {toml(task.tags)}", "[task.attrs]"]
    used = ((name, value) for name, value in facts["attrs"].items() if value not in ({}, []))
    lines += [f"{name} = {toml(value)}" for name, value in used]
    return "\n".join(lines) + "\n"


def toml(value: Any) -> str:
    """A value on one line. Raises ValueError for values that TOML cannot express."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
        case Mapping():
            pairs = (f"{_key(name)} = {toml(item)}" for name, item in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
    raise ValueError(f"{value!r} cannot be written as TOML")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml(name)
