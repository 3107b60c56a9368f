"""``--explain``: why each action ran, or did not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.store.cas import Cas
from kabuild.store.key_parts import changes, read_key


def render_explanation(
    settled: Iterable[Settled], last_key: Callable[[Label], Digest | None], cas: Cas
) -> str:
    """One paragraph per action. ``last_key`` says which key an action had before this build."""
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
        yield "no earlier result of it in this workspace's out/"
        return
    if last == key:
        yield "its key did not change: a fresh run was asked for, or the result was evicted"
        return
    old, new = read_key(cas, last), read_key(cas, key)
    if old is None or new is None:
        yield f"its key was {last.hash[:12]}; what that was made of is no longer stored"
        return
    yield from map(str, changes(old, new))
