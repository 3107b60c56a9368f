"""The wire action: what goes over it comes back, and what was changed on the way is refused."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from kabuild.base.canonical import canonical_json
from kabuild.execution.prepared import BASE_ENV, Prepared, prepare
from kabuild.execution.wire import (
    NOTE,
    PROGRAM,
    ForeignToolchainError,
    input_root,
    read_note,
    rebuild,
    wire_action,
    wire_survey,
)
from kabuild.model.action import Action, Limits, Resources, Toolchain
from kabuild.model.digest import Digest
from kabuild.model.platform import Platform
from kabuild.store.merkle import FileNode, build
from tests.testkit.actions import command, gate
from tests.testkit.reapi import parse

TOOL = Toolchain("python", "python", b'{"a":1}', "/here", ("/here/lib",))
THERE = replace(TOOL, home="/there", mounts=("/there/lib",))
KNOWN = {Digest.of(TOOL.fingerprint).hash: THERE}
ACTION = replace(
    gate(
        "a.perf",
        "${toolchain:python}/bin/python",
        "",
        "ü",
        outputs=("b", "a/c"),
        env=BASE_ENV,
        toolchains=(TOOL,),
        limits=Limits(12.5, 1 << 20, 7, 1 << 21),
        resources=Resources(0, "cuda", timed=True),
        platform=Platform("cuda", (("arch", "sm_90"), ("device", "a b"))),
    ),
    preload=("torch",),
    nestable=True,
    journal=True,
    sandboxed=True,
    facts="b",
)


def prepared_of(action: Action = ACTION) -> Prepared:
    entries = [("x/y", FileNode(Digest.of(b"1"), executable=True))]
    for tool in action.toolchains:
        fingerprint = FileNode(Digest.of(tool.fingerprint))
        entries.append((f".kabuild/toolchains/{tool.name}.json", fingerprint))
    return prepare(action, build(entries))


def note_of(prepared: Prepared) -> bytes:
    wire = wire_action(prepared, {}, PROGRAM)
    return wire.blobs[wire.note]


@pytest.mark.parametrize("action", [ACTION, command("a"), command("b", outputs=())])
def test_what_a_client_sends_is_what_a_node_runs(action: Action) -> None:
    prepared = prepared_of(action)

    note = read_note(note_of(prepared))
    back = rebuild(note, prepared.root, KNOWN)

    assert (back.key, back.message, back.command) == (
        prepared.key,
        prepared.message,
        prepared.command,
    )
    assert input_root(note) == prepared.root.digest
    alike = ("argv", "platform", "limits", "resources", "preload", "nestable", "journal")
    for name in (*alike, "sandboxed", "gate", "facts"):
        assert getattr(back.action, name) == getattr(action, name)
    assert sorted(back.action.outputs) == sorted(action.outputs)
    assert [tool.home for tool in back.action.toolchains] == ["/there"] * len(action.toolchains)


@pytest.mark.parametrize(
    "change",
    [
        {"env": (("BROWSER", "sh -c 'touch /tmp/x' %s"),)},
        {"env": (("LD_PRELOAD", "/proc/7/cwd/x.so"),)},
        {"env": (("HOME", "/root"),)},
        {"preload": ("antigravity",)},
        {"argv": ("/proc/7/cwd/python3", "gate.py")},
        {"argv": ("${toolchain:python}/../../proc/7/cwd/python3", "gate.py")},
        {"argv": ("${toolchain:python}/bin/..", "gate.py")},
    ],
)
def test_a_node_starts_nothing_of_a_client_outside_of_sandboxes(change: dict[str, Any]) -> None:
    """A warm interpreter runs there, with the action's own environment."""
    prepared = prepared_of(replace(ACTION, **change))

    back = rebuild(read_note(note_of(prepared)), prepared.root, KNOWN)

    assert back.key == prepared.key
    assert back.action.preload == ()


@pytest.mark.parametrize(("name", "lease"), [("cpu", ""), ("cpu", "cpu"), ("cuda", "cuda")])
def test_a_measurement_is_alone_whatever_its_client_asks_for(name: str, lease: str) -> None:
    """The key that a node signs does not say so, and a server could ask beside its own load."""
    platform = Platform(name, (("arch", "x"), ("device", "a b")))
    asked = Resources(2, lease, timed=False)
    measured, plain = (
        prepared_of(replace(ACTION, platform=p, resources=asked))
        for p in (platform, Platform(name, (("arch", "x"),)))
    )

    back = [rebuild(read_note(note_of(p)), p.root, KNOWN) for p in (measured, plain)]

    alone = Resources(0 if name == "cpu" else 2, name, timed=True)
    assert [item.action.resources for item in back] == [alone, asked]
    assert back[0].key == measured.key


def test_what_has_no_device_measures_on_none() -> None:
    """Such as a compilation, which any node can do."""
    platform = Platform("cuda", (("arch", "x"), ("device", "a b")))
    prepared = prepared_of(replace(ACTION, platform=platform, resources=Resources()))

    back = rebuild(read_note(note_of(prepared)), prepared.root, KNOWN)

    assert back.action.resources == Resources()


def test_a_wire_action_is_one_for_any_server() -> None:
    """It names the program alone, and an input root whose blobs are known."""
    prepared = prepared_of()
    wire = wire_action(prepared, {"pool": "h200", "device": "x"}, "/opt/run")

    action = parse("Action", wire.blobs[wire.digest])
    said = parse("Command", wire.blobs[Digest(*_parts(action.command_digest))])
    root = parse("Directory", wire.blobs[Digest(*_parts(action.input_root_digest))])

    assert [*said.arguments] == ["/opt/run"]
    assert said.working_directory == "exec"
    assert [*said.output_paths] == ["out/.kabuild", "out/a/c", "out/b", "out/verdict.json"]
    assert {p.name: p.value for p in said.platform.properties} == {"pool": "h200", "device": "x"}
    assert [file.name for file in root.files] == [NOTE]
    assert [(d.name, _parts(d.digest)[0]) for d in root.directories] == [
        ("exec", prepared.root.digest.hash)
    ]
    assert not action.do_not_cache
    assert action.timeout.seconds == 612


def _parts(digest: Any) -> tuple[str, int]:
    return digest.hash, digest.size_bytes


def test_labels_are_outside_of_the_wire_action() -> None:
    """So servers merge and remember equal actions of different tasks."""
    one = prepared_of()
    other = replace(
        one, action=replace(ACTION, label=ACTION.label.sibling("b"), mnemonic="Other"), device="0"
    )

    assert wire_action(one, {}, PROGRAM) == wire_action(other, {}, PROGRAM)


def test_fresh_runs_are_neither_merged_nor_remembered() -> None:
    one, two = (replace(prepared_of(), fresh=name) for name in "12")
    wires = [wire_action(item, {}, PROGRAM) for item in (one, two)]

    assert wires[0].digest != wires[1].digest
    for wire in wires:
        assert parse("Action", wire.blobs[wire.digest]).do_not_cache


def test_a_question_is_no_action() -> None:
    wire = wire_survey("nonce", {}, PROGRAM)

    note = read_note(wire.blobs[wire.note])

    assert (note.is_survey, note.fresh, note.key) == (True, "nonce", wire.note)


def changed(**values: Any) -> bytes:
    return canonical_json({**json.loads(note_of(prepared_of())), **values})


def other_message(name: str) -> str:
    return base64.b64encode(getattr(prepared_of(command("b")), name)).decode()


BAD_NOTES = {
    "no JSON": b"{",
    "a list": b"[]",
    "nothing in it": b"{}",
    "another schema": changed(schema=2),
    "another question": changed(ask="shell"),
    "another action": changed(action=other_message("message")),
    "no action": changed(action="", key=[Digest.of(b"").hash, 0]),
    "no base64": changed(action="?"),
    "a key of numbers": changed(key=[1, 2]),
    "text for a list": changed(preload="torch"),
    "numbers in a list": changed(preload=[1]),
    "a number for truth": changed(nestable=1),
    "truth for a number": changed(resources={"cpus": True, "lease": "", "timed": False}),
    "no resources": changed(resources=None),
}


@pytest.mark.parametrize("data", BAD_NOTES.values(), ids=BAD_NOTES)
def test_a_note_of_somebody_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_note(data)


def test_another_command_is_refused() -> None:
    note = read_note(changed(command=other_message("command")))

    with pytest.raises(ValueError, match="its command does not match its action"):
        rebuild(note, prepared_of().root, KNOWN)


def test_what_a_node_does_not_know_is_refused() -> None:
    """An action that uses the network, or is not hermetic, has a property of which it is told."""
    prepared = prepared_of(replace(ACTION, network=True))
    open_ = prepare(ACTION, prepared.root, hermetic=False)

    for item in (prepared, open_):
        with pytest.raises(ValueError, match="its key does not match its content"):
            rebuild(read_note(note_of(item)), item.root, KNOWN)


def test_a_toolchain_that_is_another_one_is_named() -> None:
    prepared = prepared_of()

    with pytest.raises(ForeignToolchainError) as caught:
        rebuild(read_note(note_of(prepared)), prepared.root, {})

    assert caught.value.args == ("python", Digest.of(TOOL.fingerprint).hash)
