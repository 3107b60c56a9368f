"""The wire action: an action of kabuild, put so that a worker of any REAPI server can run it.

An engine's worker does not know toolchains, limits and devices. So it starts one small
program, which hands its directory on to the node's own kabuild (``kabuild.worker``)::

    wire.json       the note: the key action's messages, and what is outside of the key
    exec/           the key action's input root, digest and all; the program starts here
    exec/out/       the declared outputs, and in .kabuild/ the report

The wire action is made of the key action and its routing alone: without label, user and time. So
equal actions are equal on the wire, too, and a server can merge and remember them. Its digest names
no result of ours: only the key does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.canonical import canonical_json, parse_fields
from kabuild.execution.inputs import TOOLCHAINS
from kabuild.execution.prepared import Prepared, preload_of_stranger, prepare
from kabuild.model.action import OUTPUT_ROOT, Action, Limits, Resources, Toolchain
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.platform import CPU, Platform
from kabuild.store import merkle

PROGRAM = "/usr/local/bin/kabuild-worker-exec"
"""The program on workers, by default. Engines that allow programs by name want it absolute."""

NOTE = "wire.json"
EXEC = "exec"
REPORT = ".kabuild"
"""The directory of the report, below ``out/``."""

RESULT, FAULT, TREES = "result", "fault", "trees"
"""In the report: the signed result, why the command was stopped, trees of directories."""

REMEMBERED, ENDED = 0, 10
"""Exit codes of the program: an end that a server may remember, and one that it should not."""

GRACE = 600.0
"""Seconds beyond an action's own timeout: for its lease on the node, and to come and go."""

_SCHEMA = 1
_RUN, _SURVEY = "run", "survey"
_SURVEY_SECONDS = 60.0


class ForeignToolchainError(LookupError):
    """A node lacks a toolchain: its name, and the hash of its fingerprint."""


@dataclass(frozen=True)
class WireAction:
    """A wire action: its digest, and the messages that it consists of, by their digests.

    ``note`` is one of them. The other blobs are those of the key action's input root.
    """

    digest: Digest
    note: Digest
    blobs: Mapping[Digest, bytes]


@dataclass(frozen=True)
class Note:
    """What a node is asked: to run an action, or (``action`` is empty) what it offers.

    Attributes:
        key: the digest of ``action``.
        action, command: the key action's messages.
        settings: what is outside of the key; see ``Action``.
        fresh: names this run, which no remembered one may stand for; else empty.
    """

    key: Digest
    action: bytes
    command: bytes
    settings: Mapping[str, Any]
    resources: Resources
    fresh: str

    @property
    def is_survey(self) -> bool:
        """Whether the node is asked what it offers."""
        return not self.action


def wire_action(prepared: Prepared, routing: Mapping[str, str], program: str) -> WireAction:
    """The wire action of ``prepared``. ``routing`` are properties of workers that may run it."""
    action = prepared.action
    needs = action.resources
    note = {
        "ask": _RUN,
        "key": [prepared.key.hash, prepared.key.size],
        "action": base64.b64encode(prepared.message).decode(),
        "command": base64.b64encode(prepared.command).decode(),
        "gate": action.gate,
        "facts": action.facts,
        "nestable": action.nestable,
        "preload": list(action.preload),
        "journal": action.journal,
        "sandboxed": action.sandboxed,
        "resources": {"cpus": needs.cpus, "lease": needs.lease, "timed": needs.timed},
        "fresh": prepared.fresh,
    }
    seconds = action.limits.timeout + GRACE
    return _wired(note, prepared.root, action.outputs, routing, program=program, seconds=seconds)


def wire_survey(fresh: str, routing: Mapping[str, str], program: str) -> WireAction:
    """A wire action that asks a node what it offers; ``fresh`` names this question."""
    note = {"ask": _SURVEY, "fresh": fresh}
    empty = merkle.Directory({}, {})
    return _wired(note, empty, (), routing, program=program, seconds=_SURVEY_SECONDS)


def _wired(
    note: Mapping[str, Any],
    root: merkle.Directory,
    outputs: Iterable[str],
    routing: Mapping[str, str],
    *,
    program: str,
    seconds: float,
) -> WireAction:
    data = canonical_json({"schema": _SCHEMA, **note})
    top = merkle.Directory({NOTE: merkle.FileNode(Digest.of(data))}, {EXEC: root})
    platform = merkle.platform_message(routing.items())
    command = merkle.command_message(
        (program,),
        {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        (f"{OUTPUT_ROOT}/{path}" for path in (REPORT, *outputs)),
        platform,
        directory=EXEC,
    )
    message = merkle.action_message(
        Digest.of(command), top.digest, seconds, platform, cacheable=not note["fresh"]
    )
    directories = [directory.wire for directory in top.all_directories()]
    blobs = {Digest.of(blob): blob for blob in (data, command, message, *directories)}
    return WireAction(Digest.of(message), Digest.of(data), blobs)


def read_note(data: bytes) -> Note:
    """Read what a client asks. Raises ``ValueError`` for anything that no client of ours wrote."""
    try:
        said = read_json(data)
        if said["schema"] != _SCHEMA:
            raise ValueError(f"its schema is {said['schema']!r}, expected {_SCHEMA}")
        fresh = _typed(said["fresh"], str)
        if said["ask"] == _SURVEY:
            return Note(Digest.of(data), b"", b"", {}, Resources(), fresh)
        if said["ask"] != _RUN:
            raise ValueError(f"it asks for {said['ask']!r}")
        message = base64.b64decode(said["action"], validate=True)
        command = base64.b64decode(said["command"], validate=True)
        needs = said["resources"]
        note = Note(
            key=Digest(*said["key"]),
            action=message,
            command=command,
            settings={name: _typed(said[name], kind) for name, kind in _SETTINGS.items()},
            resources=Resources(
                _typed(needs["cpus"], int),
                _typed(needs["lease"], str),
                _typed(needs["timed"], bool),
            ),
            fresh=fresh,
        )
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if Digest.of(message) != note.key:
        raise ValueError("its key does not match its action")
    if not message:
        raise ValueError("it has no action")
    return note


_SETTINGS: Mapping[str, type] = {
    "gate": str,
    "facts": str,
    "nestable": bool,
    "preload": list,
    "journal": bool,
    "sandboxed": bool,
}


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r} should be of type {kind.__name__}")
    items = [*value] if isinstance(value, list) else []
    if not all(isinstance(item, str) for item in items):
        raise ValueError(f"{value!r} should be a list of texts")
    return value


def input_root(note: Note) -> Digest:
    """The digest of the input root that the note's action states. Raises ``ValueError``."""
    return _digest(dict(parse_fields(note.action)), 2)


def rebuild(note: Note, root: merkle.Directory, toolchains: Mapping[str, Toolchain]) -> Prepared:
    """The action that a client prepared, with this machine's toolchains.

    ``toolchains`` are those of this machine by the hash of their fingerprints. The key is computed
    again, so that unknown fields of the messages count. Raises ``ValueError`` if it differs, and
    ForeignToolchainError.
    """
    fields = dict(parse_fields(note.action))
    said = _Command.read(note.command)
    if _digest(fields, 1) != Digest.of(note.command):
        raise ValueError("its command does not match its action")
    timeout = fields.get(6, b"")
    if isinstance(timeout, int):
        raise ValueError("its timeout is not a duration")
    try:
        platform = said.properties["platform"]
        limits = Limits(
            merkle.parse_duration(timeout),
            *(int(said.properties[f"limits.{name}"]) for name in _LIMITS),
        )
    except KeyError as error:
        raise ValueError(f"it lacks the property {error}") from None
    settings: Mapping[str, Any] = note.settings
    here = Platform(
        platform,
        tuple(
            (name.removeprefix(_PLATFORM), value)
            for name, value in said.properties.items()
            if name.startswith(_PLATFORM)
        ),
    )
    action = Action(
        label=Label("fleet", note.key.hash[:16]),
        argv=said.argv,
        inputs=(),
        outputs=said.outputs,
        platform=here,
        env=tuple(said.env.items()),
        toolchains=tuple(_toolchains(root, toolchains)),
        limits=limits,
        gate=settings["gate"],
        facts=settings["facts"],
        resources=_resources(here, note.resources),
        preload=preload_of_stranger(settings["preload"], said.argv, said.env),
        nestable=settings["nestable"],
        journal=settings["journal"],
        sandboxed=settings["sandboxed"],
    )
    prepared = prepare(action, root)
    if prepared.key != note.key:
        raise ValueError(
            "its key does not match its content: compare the versions of kabuild on both sides"
        )
    return prepared


_PLATFORM, _ARCH = "platform.", "arch"
_LIMITS = ("memory", "processes", "scratch")


def _resources(platform: Platform, asked: Resources) -> Resources:
    """What an action takes on a node: a measurement is alone, whatever its client asks for.

    The key says nothing of resources, and is what a node signs. It may be a measurement's if it has
    the properties of a machine that only affect times, and something to measure on.
    """
    exact = any(name != _ARCH for name, _ in platform.properties)
    if not exact or not (asked.lease or platform.name == CPU):
        return asked
    return Resources(0 if platform.name == CPU else asked.cpus, platform.name, timed=True)


@dataclass(frozen=True)
class _Command:
    """What REAPI's ``Command`` says."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    outputs: tuple[str, ...]
    properties: Mapping[str, str]

    @classmethod
    def read(cls, data: bytes) -> _Command:
        parts: dict[int, list[bytes]] = {1: [], 2: [], 5: [], 7: []}
        for number, value in parse_fields(data):
            if isinstance(value, int) or number not in parts:
                raise ValueError(f"field {number} of its command is not known")
            parts[number].append(value)
        properties = [value for part in parts[5] for _, value in parse_fields(part)]
        return cls(
            argv=tuple(value.decode() for value in parts[1]),
            env=dict(map(_pair, parts[2])),
            outputs=tuple(v.decode().removeprefix(f"{OUTPUT_ROOT}/") for v in parts[7]),
            properties=dict(map(_pair, properties)),
        )


def _pair(message: int | bytes) -> tuple[str, str]:
    if isinstance(message, int):
        raise ValueError("a number where a message was expected")
    fields = dict(parse_fields(message))
    name, value = fields.get(1, b""), fields.get(2, b"")
    if isinstance(name, int) or isinstance(value, int):
        raise ValueError("a number where a text was expected")
    return name.decode(), value.decode()


def _digest(fields: Mapping[int, int | bytes], number: int) -> Digest:
    value = fields.get(number, 0)
    if isinstance(value, int):
        raise ValueError("a digest is missing")
    return Digest.from_wire(value)


def _toolchains(root: merkle.Directory, known: Mapping[str, Toolchain]) -> Iterable[Toolchain]:
    """This machine's toolchains with the fingerprints in an input root, under the names there."""
    inside: merkle.Directory | None = root
    for part in TOOLCHAINS.split("/"):
        inside = inside.directories.get(part) if inside else None
    for file, node in sorted(inside.files.items()) if inside else ():
        name = file.removesuffix(".json")
        found = known.get(node.digest.hash)
        if found is None:
            raise ForeignToolchainError(name, node.digest.hash)
        yield Toolchain(name, found.role, found.fingerprint, found.home, found.mounts)


def report_key(key: Digest, fresh: str, fault: str, *, remembered: bool) -> Digest:
    """What the result in a report is signed for.

    An end that is remembered is signed for its key, so that it may be filed under it in any cache.
    Any other is signed for something that is not a key, so that neither a failure nor an answer to
    another question can be passed off as a result.
    """
    if remembered and not fresh and not fault:
        return key
    said = {"key": [key.hash, key.size], "fresh": fresh, "fault": fault, "remembered": remembered}
    return Digest.of(b"kabuild-report\n" + canonical_json(said))


def leaves_report(paths: Sequence[str]) -> bool:
    """Whether outputs with these paths leave the report's directory alone."""
    return not any(path.split("/")[0] == REPORT for path in paths)
