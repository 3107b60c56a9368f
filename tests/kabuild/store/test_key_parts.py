"""What a key is made of, as people read it."""

from __future__ import annotations

import pytest

from kabuild.execution import Inputs, prepare
from kabuild.model.action import Limits
from kabuild.model.digest import Digest
from kabuild.store.key_parts import KeyParts, changes, read_key
from tests.testkit.actions import command
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryCas


def parts(cas: MemoryCas, timeout: float) -> KeyParts | None:
    action = command("task", inputs={}, limits=Limits(timeout=timeout))
    prepared = prepare(action, Inputs({}, NoIndex()).root(action, {}))
    for message in (prepared.message, prepared.command, prepared.root.wire):
        cas.put(message)
    return read_key(cas, prepared.key)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [(1020, 1021, "1020 s -> 1021 s"), (0.5, 604_920.25, "0.5 s -> 604920.25 s")],
)
def test_a_timeout_is_in_seconds(old: float, new: float, told: str) -> None:
    cas = MemoryCas()
    before, after = parts(cas, old), parts(cas, new)
    assert before
    assert after
    assert [*map(str, changes(before, after))] == [f"timeout: {told}"]


def test_what_is_not_stored_has_no_parts() -> None:
    assert read_key(MemoryCas(), Digest.of(b"none")) is None
