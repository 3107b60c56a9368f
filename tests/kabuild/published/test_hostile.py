"""Bundles from people who do not mean well, and from bad disks."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kabuild.base.errors import BundleError, Reason
from kabuild.bundle.archive import open_bundle
from kabuild.bundle.compare import Comparison, Word
from kabuild.bundle.manifest import Manifest
from kabuild.cli import replay, verify
from kabuild.published.origin import Origins
from kabuild.published.replay import Replayed
from kabuild.published.verify import Verified, verify_file
from tests.kabuild.store.test_trees import doubled
from tests.testkit.bundles import RECORD, read_members, with_manifest, write_members
from tests.testkit.evaluations import GATES
from tests.testkit.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from kabuild.store import Store
    from tests.kabuild.published.conftest import Published

LIMIT = 1 << 26


def refused(path: Path, limit: int = LIMIT) -> BundleError:
    """The error that reading all of a bundle ends with."""
    with pytest.raises(BundleError) as caught, open_bundle(path, limit=limit) as bundle:
        list(bundle.blobs())
    return caught.value


def test_a_whole_one_is_read(published: Published) -> None:
    with open_bundle(published.bundle, limit=LIMIT) as bundle:
        assert len(list(bundle.blobs())) == len(bundle.manifest.blobs)


def harmless_or_refused(path: Path, whole: Path) -> None:
    """A damaged copy either gives every byte that the whole one gives, or an error."""
    try:
        with open_bundle(path, limit=LIMIT) as bundle:
            found = bundle.manifest, list(bundle.blobs())
    except BundleError:
        return
    with open_bundle(whole, limit=LIMIT) as bundle:
        assert found == (bundle.manifest, list(bundle.blobs()))


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_that_ends_early_is_refused(
    published: Published, tmp_path: Path, data: st.DataObject
) -> None:
    whole = published.bundle.read_bytes()
    path = tmp_path / "short.kab"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    harmless_or_refused(path, published.bundle)


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.9, 0.99])
def test_one_without_its_end_is_no_bundle(
    published: Published, tmp_path: Path, part: float
) -> None:
    whole = published.bundle.read_bytes()
    path = tmp_path / "short.kab"
    path.write_bytes(whole[: int(len(whole) * part)])
    error = refused(path)
    assert error.reason is Reason.BUNDLE_DAMAGED
    assert error.message.startswith(f"{path}: it ") or f"{path} is damaged" in error.message


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_with_a_changed_byte_is_refused(
    published: Published, tmp_path: Path, data: st.DataObject
) -> None:
    whole = bytearray(published.bundle.read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "changed.kab"
    path.write_bytes(whole)
    harmless_or_refused(path, published.bundle)


def test_one_with_something_behind_it_is_refused(published: Published, tmp_path: Path) -> None:
    path = tmp_path / "longer.kab"
    path.write_bytes(published.bundle.read_bytes() + b"more")
    assert refused(path).reason is Reason.BUNDLE_DAMAGED


def test_a_changed_blob_is_named(published: Published, tmp_path: Path) -> None:
    members = read_members(published.bundle)
    name = [name for name, data in members.items() if b"kernel 0" in data][-1]
    members[name] = members[name].replace(b"kernel 0", b"kernel 9")
    error = refused(write_members(tmp_path / "tampered.kab", members))
    assert name.removeprefix("blobs/") in error.message
    assert error.hint == "do not trust this copy"


def test_missing_unnamed_and_misplaced_blobs_are_refused(
    published: Published, tmp_path: Path
) -> None:
    members = read_members(published.bundle)
    last = list(members)[-1]

    missing = {name: data for name, data in members.items() if name != last}
    assert "1 of" in refused(write_members(tmp_path / "a.kab", missing)).message
    unnamed = members | {f"blobs/{'f' * 64}": b"x"}
    assert "does not name" in refused(write_members(tmp_path / "b.kab", unnamed)).message
    first = list(members)[2]
    swapped = {name: data for name, data in members.items() if name != first}
    swapped[first] = members[first]
    assert "not in its place" in refused(write_members(tmp_path / "c.kab", swapped)).message
    outside = members | {"../../outside": b"x"}
    assert "'../../outside'" in refused(write_members(tmp_path / "d.kab", outside)).message


def _header(name: str, kind: bytes, **fields: Any) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry


@pytest.mark.parametrize(
    "entry",
    [
        _header("blobs/link", tarfile.SYMTYPE, linkname="/etc/passwd"),
        _header("blobs/hard", tarfile.LNKTYPE, linkname="manifest.json"),
        _header("blobs/dev", tarfile.CHRTYPE),
        _header("blobs/dir", tarfile.DIRTYPE),
    ],
    ids=lambda entry: entry.name,
)
def test_what_is_no_plain_file_is_refused(
    published: Published, tmp_path: Path, entry: tarfile.TarInfo
) -> None:
    path = write_members(tmp_path / "a.kab", read_members(published.bundle), (entry,))
    assert f"{entry.name!r} is not a regular file" in refused(path).message


def test_a_long_name_is_not_read_into_memory(tmp_path: Path) -> None:
    """Its header announces 4 GiB; the stream has nothing of it, and nobody asks for it."""
    header = _header("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=4 << 30)
    data = header.tobuf(tarfile.GNU_FORMAT)
    path = tmp_path / "a.kab"
    path.write_bytes(zstandard.ZstdCompressor().compress(data + bytes(1 << 20)))
    assert "is not a regular file" in refused(path).message


def test_a_bomb_is_refused_before_it_unpacks(published: Published, tmp_path: Path) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["blobs"]["0" * 64] = 1 << 40

    bomb = with_manifest(published.bundle, tmp_path / "a.kab", edit)
    error = refused(bomb)
    assert error.reason is Reason.BUNDLE_TOO_LARGE
    assert "--max_bytes" in error.hint

    zeros = tmp_path / "zeros.kab"
    zeros.write_bytes(zstandard.ZstdCompressor().compress(bytes(1 << 28)))
    assert zeros.stat().st_size < 1 << 16
    assert "200 times its size" in refused(zeros).message


def test_a_blob_larger_than_announced_is_not_read(published: Published, tmp_path: Path) -> None:
    members = read_members(published.bundle)
    name = list(members)[2]
    members[name] += bytes(1 << 20)
    assert "bytes, not" in refused(write_members(tmp_path / "a.kab", members)).message


def test_one_of_a_newer_kabuild_says_so(published: Published, tmp_path: Path) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["schema"] = "kabuild/bundle/2"

    error = refused(with_manifest(published.bundle, tmp_path / "a.kab", edit))
    assert error.reason is Reason.BUNDLE_VERSION
    assert "'kabuild/bundle/2'" in error.message
    assert "update the checkout" in error.hint


def _every(field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(manifest: dict[str, Any]) -> None:
        for item in manifest["actions"]:
            item[field] = value

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        _every("label", "//a/../../b:c"),
        _every("label", 7),
        _every("toolchains", ["../../etc"]),
        _every("preload", ["os; evil"]),
        _every("cpus", -1),
        _every("cpus", 10**9),
        _every("files", [["../../outside", f"{'0' * 64}/1", False]]),
        _every("files", [["/etc/passwd", f"{'0' * 64}/1", False]]),
        _every("files", [["a", "nonsense", False]]),
        _every("key", f"{'0' * 64}/-1"),
        lambda manifest: manifest.pop("actions"),
        lambda manifest: manifest.update(actions="none"),
        lambda manifest: manifest.update(blobs={"../x": 1}),
        lambda manifest: manifest.update(platform=[]),
    ],
)
def test_a_malformed_manifest_is_refused(
    published: Published, tmp_path: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    error = refused(with_manifest(published.bundle, tmp_path / "a.kab", edit))
    assert error.reason is Reason.BUNDLE_DAMAGED
    assert "malformed" in error.message


def _another_label(manifest: dict[str, Any], **fields: str) -> None:
    (first, *_) = [item for item in manifest["actions"] if item["gate"] == "correctness"]
    manifest["actions"].append({**first, **fields})


def _two_verdicts(manifest: dict[str, Any]) -> None:
    """The false one is shown, the true one is what a rerun makes."""
    (first, *_) = [item for item in manifest["actions"] if item["gate"] == "correctness"]
    first["files"] = [["verdict.json", f"{'0' * 64}/1", False], *first["files"]]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_another_label, "lists the action '//tasks"),
        (_two_verdicts, "lists the output 'verdict.json' twice"),
    ],
)
def test_nothing_is_said_twice(
    published: Published,
    tmp_path: Path,
    edit: Callable[[dict[str, Any]], None],
    said: str,
) -> None:
    error = refused(with_manifest(published.bundle, tmp_path / "a.kab", edit))
    assert error.reason is Reason.BUNDLE_DAMAGED
    assert said in error.message


def test_a_task_has_one_verdict_of_each_gate(
    published: Published, tmp_path: Path, store: Store
) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        _another_label(manifest, label="//tasks/family0/t0:t0.second")

    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit)
    with pytest.raises(BundleError, match="has two verdicts of gate correctness"):
        verify_file(bundle, store, GATES, limit=LIMIT)


def test_provenance_that_says_something_else_is_refused(
    published: Published, tmp_path: Path
) -> None:
    members = read_members(published.bundle)
    statement = json.loads(members["provenance.json"])
    statement["subject"] = []
    members["provenance.json"] = json.dumps(statement).encode()
    assert "provenance.json contradicts" in refused(write_members(tmp_path / "a", members)).message


@pytest.mark.parametrize("field", ["key", "command", "root"])
def test_an_action_that_is_not_what_its_key_says_is_refused(
    published: Published, tmp_path: Path, store: Store, field: str
) -> None:
    """The verdicts of one task beside the sources of another."""

    def edit(manifest: dict[str, Any]) -> None:
        one, *_, other = [item for item in manifest["actions"] if item["gate"] == "compile"]
        one[field] = other[field] if field != "command" else other["root"]

    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit)
    with pytest.raises(BundleError, match="does not match its key"):
        verify_file(bundle, store, GATES, limit=LIMIT)


def test_inputs_that_would_be_a_billion_paths_are_refused(
    published: Published, tmp_path: Path, store: Store
) -> None:
    root, messages = doubled(40)

    def edit(manifest: dict[str, Any]) -> None:
        manifest["actions"][0]["root"] = str(root)
        manifest["blobs"].update({digest.hash: digest.size for digest in messages})

    blobs = {f"blobs/{digest.hash}": wire for digest, wire in messages.items()}
    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit, blobs)
    with pytest.raises(BundleError, match="too many paths"):
        verify_file(bundle, store, GATES, limit=LIMIT)


HOSTILE = "::error::x\n##vso[task.setvariable]\x1b]0;title\x07\u202e\u2028\x9b"


@pytest.mark.parametrize("command", ["verify", "report"])
def test_what_a_bundle_says_acts_on_no_terminal(
    published: Published, tmp_path: Path, command: str
) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["kabuild"] = HOSTILE
        manifest["platform"][HOSTILE] = HOSTILE
        manifest["request"].update(agent=HOSTILE, gates=[HOSTILE], policy=HOSTILE)

    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit)
    elsewhere = published.elsewhere(tmp_path)
    ran = elsewhere.run(command, str(bundle), *(["--format=md"] if command == "report" else []))
    said = ran.out + ran.err
    assert said
    assert not set(said) & set("\x1b\x07\u202e\u2028\x9b")
    assert "##vso[" not in said
    assert not any(line.lstrip().startswith("::") for line in said.splitlines())


def test_no_name_in_a_bundle_makes_a_line_of_its_own_or_clears_another() -> None:
    """A terminal obeys the sequences that kabuild itself uses, so a bundle must not send them."""
    false = "judged by this kabuild's own code"
    path = f"tools/x\n{false}\r\x1b[2J\x1b[1A"
    found = Origins((path,), {path: 1})
    manifest = Manifest("1", {}, {"gates": [f"perf\n{false}\x1b[2K"]}, (), {})
    verified = Verified(manifest, {}, {}, {path: 1}, found)
    replayed = Replayed(manifest, (Comparison(RECORD, Word.DIFFERENT, path),), found, {})
    for said in (verify.told(Path("a.kab"), verified, "ada"), replay.told(replayed)):
        assert not set(said) & set("\x1b\r")
        assert false not in said.splitlines()
        assert false in said


@pytest.mark.parametrize("field", ["label", "task", "gate", "mnemonic", "lease"])
def test_a_bundle_whose_names_are_none_is_refused(
    published: Published, tmp_path: Path, field: str
) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["actions"][0][field] = HOSTILE

    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit)
    assert refused(bundle).reason is Reason.BUNDLE_DAMAGED
