"""Nothing in a store is believed that its user did not write."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.seal import Seal
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult
from kabuild.store import Store
from kabuild.store.action_cache import encode
from kabuild.store.sealed_entry import parts, sealed
from kabuild.store.verify import check
from tests.testkit.seal import OTHER_SEAL

KEY, OTHER = Digest.of(b"an action"), Digest.of(b"another")
SLOW, FAST = (ActionResult(code, (), seconds=1.0) for code in (1, 0))


class Told:
    """A store that is opened again and again, and what it says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []

    def get(self, key: Digest) -> ActionResult | None:
        with Store.open(self.root, warn=self.warnings.append) as store:
            for _ in range(3):
                found = store.actions.get(key)
            return found

    def entry(self, key: Digest) -> Path:
        return self.root / "ac" / key.hash[:2] / key.hash

    def problems(self, *, remove: bool = False) -> list[str]:
        with Store.open(self.root) as store:
            return [d.problem for d in check(self.root, store.seal, remove=remove).damages]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    with Store.open(tmp_path) as store:
        store.actions.put(KEY, SLOW)
        store.actions.put(OTHER, FAST)
    return Told(tmp_path)


def test_what_this_user_judged_is_believed(told: Told) -> None:
    assert told.get(KEY) == SLOW
    assert told.warnings == []
    assert told.problems() == []


@pytest.mark.parametrize("by", ["nobody", "a stranger"])
def test_a_forged_result_is_no_result_and_is_told_once(told: Told, by: str) -> None:
    with Store.open(told.root) as store:
        message = encode(FAST, store.cas, ended=1.0)
    entry = message if by == "nobody" else sealed(message, KEY.hash, OTHER_SEAL)
    told.entry(KEY).write_bytes(entry)

    assert told.get(KEY) is None
    word = "not sealed" if by == "nobody" else "sealed with another key"
    assert told.warnings == [f"1 result in the store did not count: not sealed by you (1 {word})"]
    assert told.get(OTHER) == FAST


@pytest.mark.parametrize("by", ["nobody", "a stranger"])
def test_verify_finds_and_removes_a_forged_result(told: Told, by: str) -> None:
    message, _ = parts(told.entry(OTHER).read_bytes())
    entry = message if by == "nobody" else sealed(message, KEY.hash, OTHER_SEAL)
    told.entry(KEY).write_bytes(entry)

    word = "not sealed" if by == "nobody" else "sealed with another key"
    assert told.problems() == [f"not trusted: it is {word}"]
    assert told.problems(remove=True)
    assert told.problems() == []
    assert told.get(OTHER) == FAST


def test_a_seal_does_not_move_to_another_key_or_result(told: Told) -> None:
    swapped = told.entry(OTHER).read_bytes()
    message, _ = parts(swapped)
    _, seal = parts(told.entry(KEY).read_bytes())
    for forged in (swapped, message + swapped[len(message) : -40] + seal, swapped[:-1] + b"x"):
        told.entry(KEY).write_bytes(forged)

        assert told.problems() == ["not trusted: it is changed after it was sealed"]
        assert told.get(KEY) is None
        assert not told.entry(KEY).exists(), "of no use to anyone"
    assert "changed after it was sealed" in told.warnings[0]


def test_without_its_key_a_store_is_empty_and_no_error(
    told: Told, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("new")))

    assert told.get(KEY) is None
    with Store.open(told.root) as store:
        store.actions.put(KEY, replace(SLOW, seconds=2.0))
    assert told.get(KEY) == replace(SLOW, seconds=2.0)
    assert told.get(OTHER) is None


def test_a_forged_file_index_is_not_read(told: Told, tmp_path: Path) -> None:
    """Else a changed kernel would be taken for the one that was judged."""
    source = tmp_path / "kernel.hip"
    source.write_text("slow")
    with Store.open(told.root) as store:
        digest, signature = store.index.digest(str(source))
        fields = [signature.size, signature.mtime_ns, signature.ctime_ns]
        fields += [signature.inode, signature.mode]
        lie = json.dumps({str(source): [Digest.of(b"fast").hash, 4, *fields]}).encode()
        path = told.root / "index"
        for forged in (lie, OTHER_SEAL.wrap("file index", "", lie)):
            path.write_bytes(forged)
            with Store.open(told.root) as again:
                assert again.index.digest(str(source))[0] == digest
            assert len(told.problems()) == 1
        path.write_bytes(store.seal.wrap("file index", "", lie))
        with Store.open(told.root) as again:
            assert again.index.digest(str(source))[0] == Digest.of(b"fast"), "what a seal is for"


def test_what_is_sealed_with_a_throwaway_key_replaces_nothing(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results last as long as the process; those of the user's key stay."""
    everything = {path: path.read_bytes() for path in told.root.rglob("ac/*/*")}
    with monkeypatch.context() as without:
        without.setattr("kabuild.store.store.user_seal", lambda: Seal(b"x" * 32, "no home"))
        with Store.open(told.root, warn=told.warnings.append) as store:
            assert store.actions.get(KEY) is None
            store.actions.put(KEY, FAST)
            assert store.actions.get(KEY) == FAST
            assert store.actions.get(OTHER) is None
            store.index.digest(str(told.entry(KEY)))
            store.index.save()

    assert told.warnings == ["no key to seal results, so no later build will find them: no home"]
    assert {path: path.read_bytes() for path in told.root.rglob("ac/*/*")} == everything
    assert told.get(KEY) == SLOW
    assert not (told.root / "index").exists()
