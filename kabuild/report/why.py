"""``kabuild why`` and ``--explain``: why actions are cached or run, and what differs."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import Reason, StoreError
from kabuild.base.printing import escaped
from kabuild.execution.forecast import Forecast
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.report.key_history import KeyHistory
from kabuild.store.cas import Cas
from kabuild.store.key_parts import Change, KeyParts, changes, read_key

_TEXT_LIMIT = 200_000
"""The largest text whose differences are shown, in bytes."""

_MOST_CHANGES = 40
"""The most differences between two keys: keys that differ in more have little in common."""

_MOST_LINES, _MOST_COLUMNS, _MOST_VALUE = 40, 400, 80
_NAME = re.compile(r"[\w-]+")
_ABSENT = object()


def render_why(
    labels: Sequence[str],
    foreseen: Mapping[str, Forecast],
    history: KeyHistory,
    cas: Cas,
) -> str:
    """Why each action is cached or would run; then the root causes, each once."""
    causes: dict[str, None] = {}
    lines: list[str] = []
    for label in labels:
        own = list(_first_causes(label, foreseen))
        causes.update(dict.fromkeys(own))
        if foreseen[label].waits_for:
            lines.append(f"{label}: {foreseen[label].word}")
            lines.append(f"  its inputs depend on {', '.join(own)}")
    for cause in causes:
        lines.append(f"{cause}: {foreseen[cause].word}")
        lines += [f"  {line}" for line in _reasons(foreseen[cause], history, cas)]
    return "\n".join(lines) + "\n"


def render_differences(old: Digest, new: Digest, cas: Cas) -> str:
    """The differences between two keys. Raises StoreError for one that is not stored."""
    parts = []
    for key in (old, new):
        found = read_key(cas, key)
        if found is None:
            raise _not_stored(key)
        parts.append(found)
    lines = list(_differences(parts[0], parts[1], cas))
    return "\n".join(lines or ["the keys are identical"]) + "\n"


def _first_causes(label: str, foreseen: Mapping[str, Forecast]) -> Iterator[str]:
    """The root causes of ``label``: it or those of its dependencies that wait for no other."""
    seen = {label}
    pending = [label]
    while pending:
        here = pending.pop()
        waits = foreseen[here].waits_for
        if not waits:
            yield here
        pending += [other for other in waits if other not in seen]
        seen.update(waits)


def _reasons(item: Forecast, history: KeyHistory, cas: Cas) -> Iterator[str]:
    if item.problem:
        yield item.problem
        return
    key = item.settled.key if item.settled else item.prepared.key if item.prepared else None
    if key is None:
        return
    yield f"key {key.hash}"
    last = history.last(item.action.label)
    if item.settled:
        yield "its result is stored under this key; nothing changed"
        if last is None or last == key:
            return
        yield f"the last build here had another key, {last.hash}"
    elif last is None:
        yield "no earlier result in this workspace's out/"
        return
    elif last == key:
        yield "its key did not change, but its result is not stored"
        return
    if history.own(item.action.label) is None:
        yield "no earlier build with this agent or solution; compared with the last of another"
    old, new = read_key(cas, last), read_key(cas, key)
    if old is None or new is None:
        yield f"its key was {last.hash}; its inputs are no longer stored"
        return
    yield from _differences(old, new, cas)


def _differences(old: KeyParts, new: KeyParts, cas: Cas) -> Iterator[str]:
    found = changes(old, new)
    for change in found[:_MOST_CHANGES]:
        yield escaped(str(change))
        if change.is_input:
            before, after = old.files.get(change.what), new.files.get(change.what)
            if before and after:
                yield from (f"  {line}" for line in _diff(change, before, after, cas))
    if len(found) > _MOST_CHANGES:
        yield f"... {len(found) - _MOST_CHANGES} more that differ"


def _diff(change: Change, old: Digest, new: Digest, cas: Cas) -> list[str]:
    """The differences of a file, if both versions are text of a readable size."""
    if max(old.size, new.size) > _TEXT_LIMIT:
        return []
    try:
        texts = [cas.get(digest).decode() for digest in (old, new)]
    except (StoreError, UnicodeDecodeError):
        return []
    return [escaped(line) for line in text_difference(change.what, *texts)]


def _not_stored(key: Digest) -> StoreError:
    return StoreError(
        Reason.BLOB_MISSING,
        f"the parts of key {key.hash} are not stored here",
        hint="keys are shown by 'kabuild why', 'kabuild aquery' and --json",
    )


def render_explanation(
    settled: Iterable[Settled], last_key: Callable[[Label], Digest | None], cas: Cas
) -> str:
    """One paragraph per action. ``last_key`` gives an action's key before this build."""
    lines: list[str] = []
    for item in settled:
        lines.append(f"{item.label}: {_what(item)}")
        if item.key and not item.cached and item.outcome in {Outcome.DONE, Outcome.FAILED}:
            lines += [f"  {line}" for line in _why(item.key, last_key(item.label), cas)]
    return "\n".join(lines) + "\n"


def _what(item: Settled) -> str:
    if item.outcome is Outcome.SKIPPED:
        return f"skipped: {item.message}" if item.message else "skipped"
    key = f", key {item.key.hash[:12]}" if item.key else ""
    return f"{'cached' if item.cached else item.outcome.value}{key}"


def _why(key: Digest, last: Digest | None, cas: Cas) -> Iterator[str]:
    if last is None:
        yield "no earlier result in this workspace's out/"
        return
    if last == key:
        yield "its key did not change: a rerun was requested, or the result was evicted"
        return
    old, new = read_key(cas, last), read_key(cas, key)
    if old is None or new is None:
        yield f"its key was {last.hash[:12]}; its inputs are no longer stored"
        return
    yield from map(str, changes(old, new))


def text_difference(name: str, old: str, new: str) -> list[str]:
    """At most 41 lines with the differences between ``old`` and ``new`` of the file ``name``."""
    lines = _values(name, old, new) or _lines(name, old, new)
    shown = [_cut(line, _MOST_COLUMNS) for line in lines[:_MOST_LINES]]
    left = len(lines) - len(shown)
    return [*shown, f"... {left} more lines"] if left else shown


def _lines(name: str, old: str, new: str) -> list[str]:
    texts = (old.splitlines(), new.splitlines())
    return list(difflib.unified_diff(*texts, name, name, lineterm="", n=1))


def _values(name: str, old: str, new: str) -> list[str]:
    """A line for each differing value; none if either is not a JSON object or array."""
    try:
        values = (read_json(old), read_json(new))
        if not all(isinstance(value, dict | list) for value in values):
            return []
        return [f"{name}: {where}: {what}" for where, what in _between("", *values)]
    except (ValueError, RecursionError):
        return []


def _between(where: str, old: Any, new: Any) -> Iterator[tuple[str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            place = _below(where, key)
            yield from _between(place, old.get(key, _ABSENT), new.get(key, _ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        first, last = _alike(old, new), 0
        if len(old) != len(new):
            last = _alike(old[first:][::-1], new[first:][::-1])
        for at in range(first, max(len(old), len(new)) - last):
            before = old[at] if at < len(old) - last else _ABSENT
            after = new[at] if at < len(new) - last else _ABSENT
            yield from _between(f"{where}[{at}]", before, after)
    elif (before := _told(old)) != (after := _told(new)):
        yield where or "all", f"{_cut(before, _MOST_VALUE)} -> {_cut(after, _MOST_VALUE)}"


def _alike(old: list[Any], new: list[Any]) -> int:
    """The number of equal first elements."""
    same = (_told(one) == _told(other) for one, other in zip(old, new, strict=False))
    return next((at for at, is_same in enumerate(same) if not is_same), min(len(old), len(new)))


def _below(where: str, key: str) -> str:
    if not _NAME.fullmatch(key):
        return f"{where}[{json.dumps(key)}]"
    return f"{where}.{key}" if where else key


def _told(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
