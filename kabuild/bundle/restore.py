"""From a record and its blobs back to a runnable action with the same key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kabuild.base.canonical import parse_fields
from kabuild.base.errors import BundleError, Reason, StoreError
from kabuild.bundle.environment_diff import EnvironmentDifference, find_environment_difference
from kabuild.bundle.manifest import Record
from kabuild.execution.prepared import PRELOADED, Prepared, preload_of_stranger, prepare
from kabuild.model.action import OUTPUT_ROOT, Action, Limits, Resources, Toolchain
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.store.merkle import parse_duration
from kabuild.store.trees import read_directory

FindToolchain = Callable[[str], Toolchain]
"""This machine's toolchain of a name. Raises KabuildError if there is none."""

Fields = list[tuple[int, int | bytes]]


@dataclass(frozen=True)
class Restored:
    """An action ready to run again.

    ``obstacle`` says why bytes cannot be compared: another toolchain or another platform. None if
    they can.
    """

    record: Record
    prepared: Prepared
    obstacle: EnvironmentDifference | None


def restore(
    record: Record, get: Callable[[Digest], bytes], find: FindToolchain, here: Platform
) -> Restored:
    """The action of ``record``. ``get`` reads its blobs; ``here`` is this machine's platform.

    Raises BundleError if the record does not match its key, and KabuildError for a missing
    toolchain.
    """
    try:
        message = dict(parse_fields(get(record.key)))
        command = parse_fields(get(record.command))
        root = read_directory(record.root, get)
        prepared = prepare(_action(record, message, command, find), root)
        obstacle = find_environment_difference(prepared.action, root, here, get, first=PRELOADED)
    except (StoreError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise _untrue(record, str(error)) from None
    if prepared.key != record.key:
        raise _untrue(record, "its parts do not match its key")
    return Restored(record, prepared, obstacle)


def _action(
    record: Record, message: Mapping[int, int | bytes], command: Fields, find: FindToolchain
) -> Action:
    properties = dict(_pairs(_bytes(dict(command)[5]), inner=1))
    argv, env = tuple(_texts(command, 1)), tuple(_pairs_of(command, 2))
    return Action(
        label=Label.parse(record.label),
        argv=argv,
        inputs=(),
        outputs=tuple(path.removeprefix(f"{OUTPUT_ROOT}/") for path in _texts(command, 7)),
        platform=_platform(properties),
        env=env,
        toolchains=tuple(map(find, record.toolchains)),
        limits=Limits(
            timeout=parse_duration(_bytes(message[6])),
            memory=int(properties["limits.memory"]),
            processes=int(properties["limits.processes"]),
            scratch=int(properties["limits.scratch"]),
        ),
        mnemonic=record.mnemonic,
        gate=record.gate,
        resources=Resources(record.cpus, record.lease, record.timed),
        preload=preload_of_stranger(record.preload, argv, dict(env)),
        nestable=record.nestable,
        network="network" in properties,
        secrets=tuple(filter(None, properties.get("secrets", "").split(","))),
    )


def _platform(properties: Mapping[str, str]) -> Platform:
    prefix = "platform."
    return Platform(
        properties["platform"],
        tuple((k.removeprefix(prefix), v) for k, v in properties.items() if k.startswith(prefix)),
    )


def _pairs_of(fields: Fields, number: int) -> Iterator[tuple[str, str]]:
    for found, value in fields:
        if found == number:
            pair = dict(parse_fields(_bytes(value)))
            yield _bytes(pair.get(1, b"")).decode(), _bytes(pair.get(2, b"")).decode()


def _pairs(message: bytes, *, inner: int) -> Iterator[tuple[str, str]]:
    yield from _pairs_of(parse_fields(message), inner)


def _texts(fields: Fields, number: int) -> Iterator[str]:
    return (_bytes(value).decode() for found, value in fields if found == number)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message was expected")
    return value


def _untrue(record: Record, why: str) -> BundleError:
    return BundleError(
        Reason.BUNDLE_DAMAGED,
        f"{record.label} does not match its key: {why}",
        hint="do not trust this bundle",
    )
