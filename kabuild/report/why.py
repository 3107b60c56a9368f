"""``kabuild why`` and ``kabuild diff-keys``: what a key has that another has not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kabuild.base.errors import Reason, StoreError
from kabuild.execution.forecast import Forecast
from kabuild.model.digest import Digest
from kabuild.report.failures import printable
from kabuild.report.key_history import KeyHistory
from kabuild.report.text_difference import text_difference
from kabuild.store.cas import Cas
from kabuild.store.key_parts import Change, KeyParts, changes, read_key

_TEXT_LIMIT = 200_000
"""Bytes beyond which no differences of a text are shown."""

_MOST_CHANGES = 40
"""Two keys that differ in more have little in common, and no cause is seen among so many."""


def render_why(
    labels: Sequence[str],
    foreseen: Mapping[str, Forecast],
    history: KeyHistory,
    cas: Cas,
) -> str:
    """Why each of the actions is cached, or would run; then the first causes, each once."""
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
    """What differs between two keys. Raises StoreError for one that is not stored."""
    parts = []
    for key in (old, new):
        found = read_key(cas, key)
        if found is None:
            raise _not_stored(key)
        parts.append(found)
    lines = list(_differences(parts[0], parts[1], cas))
    return "\n".join(lines or ["the keys are made of the same"]) + "\n"


def _first_causes(label: str, foreseen: Mapping[str, Forecast]) -> Iterator[str]:
    """The actions, at or before ``label``, that wait for no other."""
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
        yield "its result is stored under this key; nothing of it changed"
        if last is None or last == key:
            return
        yield f"the last build here had another key, {last.hash}"
    elif last is None:
        yield "no earlier result of it in this workspace's out/"
        return
    elif last == key:
        yield "its key did not change, but the result is no longer stored, or never was"
        return
    if history.own(item.action.label) is None:
        yield "no build of it with this agent or solution is known here; the last one had another"
    old, new = read_key(cas, last), read_key(cas, key)
    if old is None or new is None:
        yield f"its key was {last.hash}; what that was made of is no longer stored"
        return
    yield from _differences(old, new, cas)


def _differences(old: KeyParts, new: KeyParts, cas: Cas) -> Iterator[str]:
    found = changes(old, new)
    for change in found[:_MOST_CHANGES]:
        yield printable(str(change))
        if change.is_input:
            before, after = old.files.get(change.what), new.files.get(change.what)
            if before and after:
                yield from (f"  {line}" for line in _diff(change, before, after, cas))
    if len(found) > _MOST_CHANGES:
        yield f"... {len(found) - _MOST_CHANGES} more that differ"


def _diff(change: Change, old: Digest, new: Digest, cas: Cas) -> list[str]:
    """What differs in it, where both are text of a readable size."""
    if max(old.size, new.size) > _TEXT_LIMIT:
        return []
    try:
        texts = [cas.get(digest).decode() for digest in (old, new)]
    except (StoreError, UnicodeDecodeError):
        return []
    return [printable(line) for line in text_difference(change.what, *texts)]


def _not_stored(key: Digest) -> StoreError:
    return StoreError(
        Reason.BLOB_MISSING,
        f"what the key {key.hash} is made of is not stored here",
        hint="keys are shown by 'kabuild why', 'kabuild aquery' and --json",
    )
