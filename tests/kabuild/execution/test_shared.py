"""Builds of two machines with one shared cache, and everything that must not come out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.canonical import int_field, message_field, text_field
from kabuild.execution import CachePolicy
from kabuild.execution.prepared import prepare
from kabuild.execution.shared import SharedCache
from kabuild.model.action import Literal
from kabuild.model.digest import Digest
from kabuild.model.graph import ActionGraph
from kabuild.model.result import ActionResult, Outcome, OutputFile
from kabuild.model.verdict import Verdict
from kabuild.store import Store
from kabuild.store.action_cache import encode
from kabuild.store.merkle import build
from kabuild.store.sealed_entry import parts
from tests.testkit.actions import command, gate
from tests.testkit.execution import ScriptedStrategy
from tests.testkit.fleet import require_fleet
from tests.testkit.reapi import parse

require_fleet()

from kabuild.remote.client import RemoteCache
from kabuild.remote.signing import statement
from tests.testkit.machines import READER, WRITER, Machine
from tests.testkit.reapi_server import ReapiServer
from tests.testkit.signers import signer


def test_a_second_machine_runs_nothing(
    server: ReapiServer, writer: Machine, reader: Machine
) -> None:
    """What it then has is its own: without the server, nothing runs either."""
    again = reader.build(READER)

    assert (reader.ran, reader.warnings) == (0, [])
    assert all(item.cached and item.outcome is Outcome.DONE for item in again.settled.values())
    here = writer.build(WRITER).settled
    assert {k: v.key for k, v in again.settled.items()} == {k: v.key for k, v in here.items()}
    assert {k: v.result for k, v in again.settled.items()} == {k: v.result for k, v in here.items()}
    server.close()
    reader.build(READER)
    assert (reader.ran, reader.warnings) == (0, [])


def test_what_is_asked_is_asked_in_waves(
    server: ReapiServer, writer: Machine, reader: Machine
) -> None:
    reader.build(READER)

    assert server.calls["GetActionResult"] == 6
    assert server.calls["BatchReadBlobs"] <= 3, "one for each level of the graph"


def test_a_full_store_asks_nobody(server: ReapiServer, writer: Machine) -> None:
    writer.connections = 0

    writer.build(WRITER)

    assert (writer.ran, writer.connections, server.calls.total()) == (0, 0, 0)


def test_every_message_that_was_sent_is_what_the_protocol_says(
    server: ReapiServer, writer: Machine
) -> None:
    """The action and its command come with each result: other tools read them."""
    assert len(server.results) == 6
    for key, entry in server.results.items():
        action = parse("Action", server.blobs[key])
        assert action.command_digest.hash in server.blobs
        assert b"kabuild.v1.ResultSignature" in entry


def test_nothing_is_sent_without_a_signer(server: ReapiServer, reader: Machine) -> None:
    reader.build(READER)

    assert (reader.ran, reader.warnings) == (6, [])
    assert not server.results
    assert not server.blobs


def test_nothing_is_taken_where_that_was_refused(
    server: ReapiServer, writer: Machine, reader: Machine
) -> None:
    reader.build(replace(READER, accept=False))

    assert reader.ran == 6
    assert server.calls["GetActionResult"] == 0


def test_a_fresh_run_takes_nothing(writer: Machine, reader: Machine) -> None:
    reader.build(READER, policy=CachePolicy(read=lambda action: not action.gate))

    assert reader.ran == 4


@pytest.mark.parametrize("part", [64, 1], ids=["one thread", "threads"])
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda key, entry: signer("mallory").sign(key, entry), "6 signed with an unknown key"),
        (lambda key, entry: entry[: entry.index(b"\x4a")], "6 unreadable"),
        (lambda key, entry: b"\xff" * 30, "6 unreadable"),
        (lambda key, entry: signer().sign(Digest.of(b"x"), entry), "6 changed after signing"),
        (lambda key, entry: _forged(entry), "6 changed after signing"),
        (lambda key, entry: signer().sign(key, _unstorable()), "6 unreadable"),
    ],
)
def test_what_does_not_count_is_made_again(
    server: ReapiServer,
    writer: Machine,
    reader: Machine,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Digest, bytes], bytes],
    why: str,
    part: int,
) -> None:
    monkeypatch.setattr("kabuild.execution.shared._PART", part)
    results = server.results
    with Store.open(writer.root) as store:
        keys = {item.key for item in writer.build(WRITER).settled.values()}
        assert all(key and store.actions.get(key) for key in keys)
    for key in keys:
        assert key
        results[key.hash] = spoil(key, results[key.hash])

    ended = reader.build(READER)

    assert (reader.ran, reader.warnings) == (
        6,
        [f"6 results of the shared cache grpc://cache did not count ({why})"],
    )
    assert all(item.outcome is Outcome.DONE for item in ended.settled.values())


def _forged(entry: bytes) -> bytes:
    """The same result, said to have failed: its exit code comes after its files."""
    at = entry.index(b"\x4a")
    return entry[:at] + b"\x20\x01" + entry[at:]


def _unstorable() -> bytes:
    """A result with an output below another one."""
    paths = ("out/lib", "out/lib/more")
    files = [text_field(1, path) + message_field(2, Digest.of(b"").to_wire()) for path in paths]
    times = message_field(7, int_field(1, 1)) + message_field(8, int_field(1, 2))
    return b"".join(message_field(2, file) for file in files) + message_field(9, times)


def test_a_forged_verdict_is_not_believed(tmp_path: Path, server: ReapiServer) -> None:
    """Who may write but not sign replaces FAIL by PASS; the task fails all the same."""
    honest = Machine(tmp_path / "one", server.endpoint(retries=0))

    def fails(strategy: ScriptedStrategy) -> None:
        strategy.behaviours["//t:a.perf"] = strategy.judge(Verdict.FAIL, "WRONG_RESULT")

    ended = honest.build(WRITER, script=fails)
    key = ended.settled["//t:a.perf"].key
    assert key
    verdict = ended.settled["//t:b.perf"].result
    assert verdict
    passing = verdict.file("verdict.json")
    failing = ended.settled["//t:a.perf"].result
    assert passing
    assert failing
    false = failing.file("verdict.json")
    assert false
    entry = server.results[key.hash]
    server.results[key.hash] = entry.replace(
        false.digest.hash.encode(), passing.digest.hash.encode()
    )
    assert server.results[key.hash] != entry
    other = Machine(tmp_path / "two", server.endpoint(retries=0))

    settled = other.build(READER, script=fails).settled

    found = settled["//t:a.perf"].verdict
    assert found
    assert found.verdict is Verdict.FAIL
    assert other.warnings == [
        "1 result of the shared cache grpc://cache did not count (1 changed after signing)"
    ]


def test_unsigned_results_do_not_count(
    server: ReapiServer, tmp_path: Path, reader: Machine
) -> None:
    """As another tool, or an older kabuild, would have left them."""
    with Store.open(tmp_path / "one") as store:
        file = OutputFile("result", store.cas.put(b"made elsewhere"))
        entry = encode(ActionResult(0, (file,)), store.cas, ended=1e9)
    server.put(b"made elsewhere")
    found = reader.build(READER).settled
    for item in found.values():
        assert item.key
        server.results[item.key.hash] = entry
    other = Machine(tmp_path / "three", server.endpoint(retries=0))

    other.build(READER)

    assert other.ran == 6
    assert "(6 not signed)" in other.warnings[0]


def test_a_damaged_blob_is_a_miss_and_is_named(
    server: ReapiServer, writer: Machine, reader: Machine
) -> None:
    blobs = server.blobs
    made = writer.build(WRITER).settled["//t:a.score"].result
    assert made
    digest = made.files[0].digest
    blobs[digest.hash] = blobs[digest.hash][:-1] + b"!"

    reader.build(READER)

    assert reader.ran == 1
    told = "1 result of the shared cache grpc://cache did not count (1 with a damaged blob)"
    assert reader.warnings == [f"{told}; damaged on the server: blob {digest}"]


def test_an_evicted_blob_is_a_miss(server: ReapiServer, writer: Machine, reader: Machine) -> None:
    made = writer.build(WRITER).settled["//t:b.score"].result
    assert made
    del server.blobs[made.files[0].digest.hash]

    reader.build(READER)

    assert reader.ran == 1
    assert "(1 without one of its blobs)" in reader.warnings[0]


def test_results_without_a_sandbox_stay_here_and_are_not_asked_for(
    tmp_path: Path, server: ReapiServer, reader: Machine
) -> None:
    bare = Machine(tmp_path / "one", server.endpoint(retries=0))
    bare.build(WRITER, hermetic=False)
    assert bare.ran == 6
    assert not server.results

    asked = server.calls["GetActionResult"]
    bare.build(WRITER, hermetic=False)

    assert (bare.ran, server.calls["GetActionResult"] - asked) == (0, 6), "for hermetic ones only"


def test_what_is_private_stays_here_and_is_not_asked_for(
    tmp_path: Path, server: ReapiServer
) -> None:
    """Neither the result nor what its key is made of: the salt is in there."""
    machine = Machine(tmp_path / "one", server.endpoint(retries=0))
    salt = Literal(b"the salt that nobody knows")
    told = gate("unseen", inputs={"spec": salt})
    agent = replace(command("agent"), secrets=("API_KEY",))
    open_ = command("open")
    machine.actions = ActionGraph.of([told, agent, open_])

    machine.build(replace(WRITER, private=frozenset({"//t:unseen"})))

    assert len(server.results) == server.calls["GetActionResult"] == 1
    with Store.open(machine.root) as store:
        kept = {path.name for path in (store.root / "cas").glob("*/*")}
    assert Digest.of(salt.data).hash in kept
    assert not any(b"salt that" in blob for blob in server.blobs.values())
    assert len(server.blobs) == 3, "one output, its action and its command"


def test_neither_asked_for_nor_sent_is_a_result_without_a_sandbox(
    tmp_path: Path, server: ReapiServer
) -> None:
    """Whoever asks: what the key says of sandboxes counts, and what the result says."""
    action = command("a")
    bare = prepare(action, build([]), hermetic=False)
    contained = prepare(action, build([]))
    with Store.open(tmp_path / "one") as store:
        made = ActionResult(0, (OutputFile("result", store.cas.put(b"made")),))

        def connect() -> RemoteCache:
            return RemoteCache.connect(server.endpoint())

        with SharedCache(store, WRITER, connect, warn=lambda _: None) as shared:
            shared.fetch([bare])
            shared.offer(bare, made)
            shared.offer(contained, replace(made, hermetic=False))

    assert not server.calls


def test_an_imported_entry_is_what_was_signed(
    server: ReapiServer, writer: Machine, reader: Machine
) -> None:
    """It says when the other machine ran it. The seal is this user's."""
    reader.build(READER)

    for key, entry in server.results.items():
        path = reader.root / "ac" / key[:2] / key
        assert parts(path.read_bytes())[0] == statement(entry)
