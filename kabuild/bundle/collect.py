"""From a finished evaluation to the manifest of a bundle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kabuild.base.canonical import parse_fields
from kabuild.base.errors import BundleError, Reason, StoreError
from kabuild.base.version import __version__
from kabuild.bundle.manifest import Manifest, Record
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.platform import Platform
from kabuild.model.result import ActionResult, Settled
from kabuild.store.cas import Cas
from kabuild.store.merkle import Directory
from kabuild.store.trees import read_directory


def collect(
    actions: Iterable[Action],
    settled: Mapping[Label, Settled],
    owners: Mapping[Label, Label],
    cas: Cas,
    *,
    platform: Platform,
    request: Mapping[str, Any],
    withheld: Collection[str] = (),
) -> Manifest:
    """The manifest of the ``actions`` that have results, dependencies first.

    ``owners`` maps gates to tasks; ``withheld`` names outputs that are not published. Raises
    BundleError(NOT_PUBLISHABLE) if a key or an input is no longer stored.
    """
    records: list[Record] = []
    blobs: dict[str, int] = {}
    for action in actions:
        item = settled.get(action.label)
        if item is None or item.key is None or item.result is None:
            continue
        try:
            record, needed = _record(action, item.key, item.result, owners.get(action.label), cas)
            given = [file for file in record.files if file.path not in withheld]
            needed += [file.digest for file in given]
            if missing := cas.missing(needed):
                raise KeyError(f"blob {missing[0].hash[:12]}")
        except (StoreError, ValueError, KeyError) as error:
            raise BundleError(
                Reason.NOT_PUBLISHABLE,
                f"inputs of {action.label} are missing from the store: {error}",
                hint="evaluate it again: kabuild test --nocache_test_results ...",
            ) from None
        kept_back = tuple(file.path for file in record.files if file not in given)
        records.append(replace(record, withheld=kept_back))
        blobs.update((digest.hash, digest.size) for digest in needed)
    return Manifest(
        kabuild=__version__,
        platform={"name": platform.name, **dict(platform.properties)},
        request=request,
        records=tuple(records),
        blobs=blobs,
    )


def _record(
    action: Action, key: Digest, result: ActionResult, owner: Label | None, cas: Cas
) -> tuple[Record, list[Digest]]:
    """The record of an action and its blobs, except those of its outputs."""
    message = dict(parse_fields(cas.get(key)))
    command, root = (Digest.from_wire(_bytes(message[number])) for number in (1, 2))
    tree = read_directory(root, cas.get)
    record = Record(
        label=str(action.label),
        task=owner.short if owner else "",
        gate=action.gate,
        mnemonic=action.mnemonic,
        key=key,
        command=command,
        root=root,
        toolchains=tuple(toolchain.name for toolchain in action.toolchains),
        preload=action.preload,
        nestable=action.nestable,
        lease=action.resources.lease,
        timed=action.resources.timed,
        cpus=action.resources.cpus,
        replayable=not action.network and not action.secrets,
        files=result.files,
    )
    return record, [key, command, *_of_tree(tree)]


def _of_tree(tree: Directory) -> Iterator[Digest]:
    yield from (directory.digest for directory in tree.all_directories())
    yield from (node.digest for _, node in tree.walk())


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message was expected")
    return value
