"""What a change of a toolchain reaches: the actions that use it, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.base.errors import Position
from kabuild.execution import Inputs, prepare
from kabuild.model.action import Literal
from kabuild.model.label import Label
from kabuild.toolchain import Declaration, Fetched, LocalTree, Resolver
from kabuild.toolchain.declaration import Layout
from kabuild.toolchain.lock import Lock, LockedFile, LockEntry, declared
from kabuild.toolchain.machine import ANY
from kabuild.toolchain.tree_store import KIND, MANIFEST, TREE, USED, TreeStore
from tests.testkit import golden
from tests.testkit.actions import command
from tests.testkit.index import NoIndex
from tests.testkit.seal import SEAL

WHEEL = LockedFile("cc-1-py3-none-any.whl", "cc==1", "a" * 64, 10)
PIN = Fetched("pypi", ("cc==1",), Layout("nvidia", ("bin",)), (ANY,))
Keys = dict[str, str]


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """An adopted tree: two headers and a program."""
    home = tmp_path / "rocm"
    (home / "include").mkdir(parents=True)
    (home / "include" / "hip.h").write_text("#define HIP 1\n")
    (home / "include" / "half.h").write_text("#define HALF 1\n")
    (home / "clang").write_text("elf")
    (home / "clang").chmod(0o755)
    return home


def keys(
    headers: Path, *, pin: Fetched = PIN, wheel: LockedFile = WHEEL, flags: tuple[str, ...] = ()
) -> Keys:
    """The keys of three actions: one on the adopted tree, one on wheels, one on neither."""
    position = Position("toolchains/BUILD.toml", 1)
    adopted = Declaration(Label("t", "rocm"), "hip", LocalTree(str(headers)), position)
    fetched = Declaration(Label("t", "cuda"), "hip", pin, position)
    lock = Lock({"//t:cuda": LockEntry("pypi", declared(fetched), {ANY: (wheel,)})})
    trees = TreeStore(headers.parent / "trees", SEAL)

    def fetch(_: object, __: object, ___: object, digest: str) -> None:
        (trees.root / digest / TREE).mkdir(parents=True)
        manifest = SEAL.wrap(KIND, digest, b'{"files": {}}')
        (trees.root / digest / MANIFEST).write_bytes(manifest)
        (trees.root / digest / USED).touch()

    resolve = Resolver(lock=lambda: lock, trees=trees, fetch=fetch)
    source = {"k.hip": Literal(b"kernel")}
    actions = {
        "adopted": command("a", "clang", *flags, inputs=source, toolchains=[resolve(adopted)]),
        "fetched": command("b", "nvcc", inputs=source, toolchains=[resolve(fetched)]),
        "neither": command("c", "cat", inputs=source),
    }
    inputs = Inputs({}, NoIndex())
    return {n: str(prepare(a, inputs.root(a, {})).key) for n, a in actions.items()}


def changed(before: Keys, after: Keys) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_what_each_change_reaches(headers: Path) -> None:
    """And the keys themselves: they change only by decision."""
    before = keys(headers)
    seen = {"as it was": before}

    seen["a flag"] = keys(headers, flags=("-O2",))
    seen["a wheel"] = keys(headers, wheel=replace(WHEEL, sha256="b" * 64))
    seen["what is kept"] = keys(headers, pin=replace(PIN, layout=Layout("nvidia", ("lib",))))
    (headers / "include" / "half.h").write_text("#define HALF 2\n")
    seen["a header"] = keys(headers)

    assert {name: changed(before, after) for name, after in seen.items()} == {
        "as it was": set(),
        "a flag": {"adopted"},
        "a wheel": {"fetched"},
        "what is kept": {"fetched"},
        "a header": {"adopted"},
    }
    golden.check("keys/toolchains", seen)


def test_where_a_tree_lies_and_when_it_was_made_do_not_count(headers: Path, tmp_path: Path) -> None:
    before = keys(headers)
    elsewhere = tmp_path / "elsewhere" / "rocm-6"
    elsewhere.parent.mkdir()
    headers.rename(elsewhere)
    (elsewhere / "clang").touch()

    assert keys(elsewhere) == before


@pytest.mark.parametrize("change", ["mode", "name", "added", "removed", "link"])
def test_every_change_of_a_tree_counts(headers: Path, change: str) -> None:
    before = keys(headers)
    header = headers / "include" / "hip.h"
    if change == "mode":
        (headers / "clang").chmod(0o644)
    elif change == "name":
        header.rename(header.with_name("hip2.h"))
    elif change == "added":
        header.with_name("more.h").touch()
    elif change == "removed":
        header.unlink()
    else:
        header.unlink()
        header.symlink_to("half.h")

    assert changed(before, keys(headers)) == {"adopted"}
