"""The text of a lock: TOML with one fact a line, so that diffs are small."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from kabuild.base.errors import LoadError, Reason
from kabuild.base.listing import abridged, counted
from kabuild.base.toml_text import quoted
from kabuild.imports.adapter import Adapter, Listed
from kabuild.imports.facts import Facts
from kabuild.loading.import_lock import MOST_BYTES, SCHEMA, LeftOut

KIND = "call"
"""The kind of all targets of external repositories."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = """\
# What the tasks of a benchmark are. Written by `kabuild import`; not to be edited.
"""


def lock_text(adapter: Adapter, commit: str, tasks: Iterable[str]) -> str:
    """The lock of a repository, with the texts of its tasks.

    Raises LoadError if it would be larger than what is read of one.
    """
    head = [f"schema = {SCHEMA}", f"adapter = {toml(adapter.digest)}", f"commit = {toml(commit)}"]
    terms = adapter.terms
    head += ["", "[terms]", f"licence = {toml(terms.licence)}"]
    head += [f"redistribute = {toml(terms.redistribute)}", f"note = {toml(terms.note)}"]
    text = _HEAD + "\n".join(head) + "\n" + "".join(tasks)
    if len(text.encode()) > MOST_BYTES:
        what = f"the lock would have more than {MOST_BYTES:,} bytes"
        raise LoadError(Reason.TOO_LARGE, what, hint="import a smaller part of the benchmark")
    return text


def task_text(task: Listed, files: Mapping[str, str], found: Facts | LeftOut) -> str:
    """One task: the SHA-256 of its files, and its facts.

    Raises ValueError for facts that a lock cannot hold: what is read from the text has to be what
    was written.
    """
    table: dict[str, Any] = {"name": task.name, "files": dict(files)}
    attrs: dict[str, Any] = {}
    if isinstance(found, LeftOut):
        table["left_out"] = {"reason": found.reason, "why": found.why}
    else:
        table |= {"origin": found.origin, "kind": KIND, "tags": list(task.tags)}
        attrs = {name: value for name, value in found.attrs.items() if value not in ({}, [])}
        table["attrs"] = attrs
    lines = ["", "[[task]]", *(_line(*item) for item in table.items() if item[0] != "attrs")]
    lines += ["[task.attrs]", *(_line(*item) for item in attrs.items())] if "attrs" in table else []
    text = "\n".join(lines) + "\n"
    try:
        same = repr(tomllib.loads(text)) == repr({"task": [table]})  # NaN is equal to nothing
    except RecursionError:
        same = False
    if not same:
        raise ValueError("a lock cannot hold it")
    return text


def differences(before: str, after: str) -> tuple[str, ...]:
    """What an import has changed in a lock's tasks, each as a line."""
    old, new = _tasks(before), _tasks(after)
    found = {
        "added": [name for name in new if name not in old],
        "changed": [name for name in new if name in old and new[name] != old[name]],
        "gone": [name for name in old if name not in new],
    }
    return tuple(
        f"{counted(len(names), 'task')} {what}: {abridged(names)}"
        for what, names in found.items()
        if names
    )


def _tasks(text: str) -> dict[str, str]:
    """The texts of a lock's tasks, by name."""
    parts = text.split("\n[[task]]\n")[1:]
    return {part.partition("\n")[0].removeprefix('name = "').rstrip('"'): part for part in parts}


def _line(name: str, value: Any) -> str:
    return f"{_key(name)} = {toml(value)}"


def toml(value: Any) -> str:
    """A value on one line. Raises ValueError for values that TOML cannot express."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return quoted(value)
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
        case Mapping():
            pairs = (f"{_key(name)} = {toml(item)}" for name, item in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
    raise ValueError(f"{value!r} cannot be written as TOML")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)
