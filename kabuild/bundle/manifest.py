"""The manifest of a bundle: its actions and blobs, as JSON that anyone can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.canonical import canonical_json
from kabuild.base.errors import BundleError, Reason, UsageError
from kabuild.base.fs import is_inside
from kabuild.base.printing import shortened
from kabuild.base.version import UPDATE
from kabuild.model.action import MNEMONIC
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.result import OutputFile

SCHEMA = "kabuild/bundle/1"

_MOST_CPUS = 4096


@dataclass(frozen=True)
class Record:
    """One action and its result.

    ``key``, ``command`` and ``root`` are digests of REAPI's Action, Command and root Directory,
    which are blobs of the bundle. The other fields are needed to run the action but are not part of
    its key.

    Attributes:
        label: of the action; ``task`` and ``gate`` are empty if it belongs to none.
        toolchains: names, in the order in which the command refers to them.
        lease: what it holds while it runs.
        timed: whether it is a measurement.
        replayable: false for an agent, which uses a network or secrets.
        files: the outputs, by path.
        withheld: paths of outputs that the bundle leaves out, such as transcripts.
    """

    label: str
    task: str
    gate: str
    mnemonic: str
    key: Digest
    command: Digest
    root: Digest
    toolchains: tuple[str, ...]
    preload: tuple[str, ...]
    nestable: bool
    lease: str
    timed: bool
    cpus: int
    replayable: bool
    files: tuple[OutputFile, ...]
    withheld: tuple[str, ...] = ()

    def file(self, path: str) -> OutputFile | None:
        """The output at ``path``."""
        return next((file for file in self.files if file.path == path), None)


@dataclass(frozen=True)
class Manifest:
    """What a bundle says of itself.

    Attributes:
        kabuild: the version that published it.
        platform: name and properties of the machine.
        request: the request, for people: tasks, their kinds, agent, gates, policy, digest of the
            salt. Older bundles do not name kinds and gates.
        records: the actions, each after those that made its inputs.
        blobs: size in bytes by SHA-256.
        instructions: the level of the processor that published it; empty if unknown.
    """

    kabuild: str
    platform: Mapping[str, str] = field(hash=False)
    request: Mapping[str, Any] = field(hash=False)
    records: tuple[Record, ...]
    blobs: Mapping[str, int] = field(hash=False)
    instructions: str = ""

    def to_json(self) -> bytes:
        """Canonical bytes: equal manifests are equal files."""
        return canonical_json(
            {
                "schema": SCHEMA,
                "kabuild": self.kabuild,
                "platform": dict(self.platform),
                "request": dict(self.request),
                "actions": [_to_json(record) for record in self.records],
                "blobs": dict(self.blobs),
                **({"instructions": self.instructions} if self.instructions else {}),
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Read and check a manifest. Raises BundleError for anything else."""
        try:
            value = bounded_json(data)
            schema = value["schema"]
        except (ValueError, TypeError, KeyError):
            raise damaged("its manifest does not belong to a bundle") from None
        if schema != SCHEMA:
            raise BundleError(
                Reason.BUNDLE_VERSION,
                f"the bundle's format is {shortened(repr(schema), 80)}; "
                f"this kabuild reads {SCHEMA!r}",
                hint=_reader_of(schema),
            )
        try:
            _check_once("action", (str(item["label"]) for item in value["actions"]))
            return cls(
                kabuild=_text(value["kabuild"]),
                platform={_text(k): _text(v) for k, v in value["platform"].items()},
                request=dict(value["request"]),
                records=tuple(_from_json(item) for item in value["actions"]),
                blobs={Digest(k, _size(v)).hash: v for k, v in value["blobs"].items()},
                instructions=_name(value["instructions"]) if "instructions" in value else "",
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise damaged(f"its manifest is malformed: {error}") from None


def _to_json(record: Record) -> dict[str, Any]:
    return {
        "label": record.label,
        "task": record.task,
        "gate": record.gate,
        "mnemonic": record.mnemonic,
        "key": str(record.key),
        "command": str(record.command),
        "root": str(record.root),
        "toolchains": list(record.toolchains),
        "preload": list(record.preload),
        "nestable": record.nestable,
        "lease": record.lease,
        "timed": record.timed,
        "cpus": record.cpus,
        "replayable": record.replayable,
        "files": [[file.path, str(file.digest), file.executable] for file in record.files],
        "withheld": list(record.withheld),
    }


def _reader_of(schema: object) -> str:
    """What reads a file of another format."""
    if isinstance(schema, str) and schema.startswith("kabuild/cache/"):
        return "it is a part of a store: 'kabuild cache import' reads it"
    return UPDATE


def _from_json(value: dict[str, Any]) -> Record:
    return Record(
        label=_label(value["label"]),
        task=_label(value["task"]) and _text(value["task"]) if value["task"] else "",
        gate=_name(value["gate"]) if value["gate"] else "",
        mnemonic=_name(value["mnemonic"]),
        key=_digest(value["key"]),
        command=_digest(value["command"]),
        root=_digest(value["root"]),
        toolchains=tuple(map(_name, value["toolchains"])),
        preload=tuple(map(_name, value["preload"])),
        nestable=value["nestable"] is True,
        lease=_name(value["lease"]) if value["lease"] else "",
        timed=value["timed"] is True,
        cpus=_count(value["cpus"]),
        replayable=value["replayable"] is True,
        files=_files(value["files"]),
        withheld=tuple(map(_text, value["withheld"])),
    )


def _files(values: Any) -> tuple[OutputFile, ...]:
    files = tuple(_file(*file) for file in values)
    _check_once("output", (file.path for file in files))
    return files


def _check_once(what: str, names: Iterable[str]) -> None:
    """Raise ``ValueError`` for a name that comes twice.

    A reader that takes the first would show another verdict than the one that a rerun compares.
    """
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"it lists the {what} {twice[:80]!r} twice")


def _file(path: Any, digest: Any, executable: Any) -> OutputFile:
    if not is_inside(_text(path)):
        raise ValueError(f"an output's path leaves its directory: {path!r}")
    return OutputFile(path, _digest(digest), executable is True)


def _digest(text: Any) -> Digest:
    hash_, _, size = _text(text).partition("/")
    return Digest(hash_, int(size))


def _label(value: Any) -> str:
    try:
        return str(Label.parse(_text(value)))
    except UsageError as error:
        raise ValueError(error.message) from None


def _name(value: Any) -> str:
    if not MNEMONIC.fullmatch(_text(value)):
        raise ValueError(f"{value!r} where a name was expected")
    return str(value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= _MOST_CPUS:
        raise ValueError(f"{value!r} where a number of CPUs was expected")
    return value


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r} where a size was expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} where a text was expected")
    return value


def damaged(why: str) -> BundleError:
    """The error for a damaged bundle."""
    return BundleError(
        Reason.BUNDLE_DAMAGED, shortened(why), hint="ask its publisher for another copy"
    )
