"""Archives are data from a network: what is hostile in them is refused, and nothing escapes."""

from __future__ import annotations

import random
import stat
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from kabuild.base.errors import DriftError, Reason
from kabuild.base.fs import remove_tree
from kabuild.toolchain.declaration import Layout
from kabuild.toolchain.tree_store import listing
from kabuild.toolchain.unpack import tree_writer
from kabuild.toolchain.unpack.formats import entries
from kabuild.toolchain.unpack.tree_writer import TreeWriter
from tests.testkit.archives import Member, deb, tar, wheel

ALL = Layout()


def unpack(
    directory: Path, archives: dict[str, bytes], layout: Layout = ALL, packed: int = 10_000
) -> Path:
    """Unpack archives by name, below ``directory``; returns the tree."""
    tree = directory / "sub" / "tree"
    remove_tree(tree)
    tree.mkdir(parents=True)
    writer = TreeWriter(tree, layout, packed)
    for name, data in archives.items():
        path = directory / "archive"
        path.write_bytes(data)
        with entries(path, name) as found:
            for entry in found:
                writer.add(entry, name)
    writer.finish("//t")
    assert listing(tree) == writer.files
    return tree


def refused(directory: Path, name: str, data: bytes, layout: Layout = ALL, **limit: int) -> str:
    """The message about an archive; nothing of it is outside of the tree."""
    with pytest.raises(DriftError) as caught:
        unpack(directory, {name: data}, layout, **limit)
    assert caught.value.reason is Reason.BAD_ARCHIVE
    assert name in caught.value.message
    outside = {path.name for path in directory.rglob("*") if "tree" not in path.parts}
    assert outside == {"archive", "sub"}
    return caught.value.message


NOISE = random.Random(0).randbytes(5000)
FORMATS = {
    "x-1-py3-none-any.whl": lambda: wheel({"a/b": NOISE, "a/run": b"r"}, {"a/run": 0o100755}),
    "x.tar.gz": lambda: tar([Member("./a/b", NOISE), Member("a/run", b"r", mode=0o755)]),
    "x.tar.xz": lambda: tar([Member("a/b", NOISE), Member("a/run", b"r", mode=0o755)], "w:xz"),
    "x.deb": lambda: deb([Member("./a/b", NOISE), Member("./a/run", b"r", mode=0o755)]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_tree(tmp_path: Path, name: str) -> None:
    tree = unpack(tmp_path, {name: FORMATS[name]()})

    assert (tree / "a" / "b").read_bytes() == NOISE
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tree / "a").iterdir()}
    assert modes == {"b": 0o444, "run": 0o555}
    assert stat.S_IMODE(tree.stat().st_mode) == 0o555


@pytest.mark.parametrize(
    "path", ["../escaped", "/etc/escaped", "a/../../escaped", "a\\..\\escaped", "a//b", "./../x"]
)
def test_paths_that_lead_out(tmp_path: Path, path: str) -> None:
    assert "may lead out of it" in refused(tmp_path, "x.tar.gz", tar([Member(path, b"x")]))
    assert "may lead out of it" in refused(tmp_path, "x.whl", wheel({path: b"x"}))


def test_a_path_that_leads_out_is_refused_though_it_is_not_kept(tmp_path: Path) -> None:
    archive = tar([Member("kept/a", b"a"), Member("../escaped", b"x")])

    refused(tmp_path, "x.tar.gz", archive, Layout(strip_prefix="kept"))


@pytest.mark.parametrize("target", ["/etc/passwd", "../../escaped", "a/../../../escaped", ""])
def test_links_that_lead_out(tmp_path: Path, target: str) -> None:
    link = Member("dir/link", kind=tarfile.SYMTYPE, target=target)

    message = refused(tmp_path, "x.tar.gz", tar([Member("a", b"a"), link]))

    assert "outside of its tree" in message


def test_links_that_lead_out_together(tmp_path: Path) -> None:
    """Each stays inside by its text; through one another they would not."""
    archive = tar(
        [
            Member("deep/er/file", b"x"),
            Member("up", kind=tarfile.SYMTYPE, target="deep/er"),
            Member("out", kind=tarfile.SYMTYPE, target="up/../../.."),
        ]
    )

    refused(tmp_path, "x.tar.gz", archive)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    archive = tar([Member("link", kind=tarfile.SYMTYPE, target="."), Member("link/file", b"x")])

    assert "as a link and as something else" in refused(tmp_path, "x.tar.gz", archive)


def test_links_inside_are_kept(tmp_path: Path) -> None:
    archive = tar(
        [
            Member("lib/libx.so", kind=tarfile.SYMTYPE, target="libx.so.1"),
            Member("lib/libx.so.1", b"elf"),
            Member("lib/copy", kind=tarfile.LNKTYPE, target="lib/libx.so.1"),
        ]
    )

    tree = unpack(tmp_path, {"x.tar.gz": archive}, Layout(links={"lib64": "lib"}))

    assert (tree / "lib64" / "libx.so").read_bytes() == b"elf"
    assert (tree / "lib" / "copy").read_bytes() == b"elf"


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        (Member("x", b"x", mode=0o4755), "setuid"),
        (Member("x", kind=tarfile.CHRTYPE), "neither file, directory nor link"),
        (Member("x", kind=tarfile.FIFOTYPE), "neither file, directory nor link"),
        (Member("x", kind=tarfile.LNKTYPE, target="/etc/passwd"), "not kept"),
    ],
)
def test_what_no_toolchain_holds(tmp_path: Path, member: Member, problem: str) -> None:
    assert problem in refused(tmp_path, "x.tar.gz", tar([Member("a", b"a"), member]))


def test_a_bomb_is_stopped_by_what_comes_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_writer, "ALLOWANCE", 1 << 20)
    zeros = b"\0" * (8 << 20)

    for name, data in (
        ("x.tar.xz", tar([Member("a", zeros)], "w:xz")),
        ("x.whl", wheel({"a": zeros})),
    ):
        assert "unpacks to more than" in refused(tmp_path, name, data, packed=len(data))


def test_too_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_writer, "MAX_ENTRIES", 3)

    assert "more than 3 entries" in refused(
        tmp_path, "x.tar.gz", tar([Member(str(n), b"") for n in range(4)])
    )


def test_two_archives_may_hold_the_same_and_not_different(tmp_path: Path) -> None:
    one, same = wheel({"a": b"1", "b": b"1"}), wheel({"a": b"1", "c": b"1"})
    assert {p.name for p in unpack(tmp_path, {"one.whl": one, "same.whl": same}).iterdir()} == {
        "a",
        "b",
        "c",
    }

    with pytest.raises(DriftError, match="hold different 'a'"):
        unpack(tmp_path, {"one.whl": one, "other.whl": wheel({"a": b"2"})})


def test_only_the_asked_parts_are_kept(tmp_path: Path) -> None:
    archive = {"x.whl": wheel({"n/cu13/bin/nvcc": b"", "n/cu13/doc": b"", "n/other": b""})}

    tree = unpack(tmp_path, archive, Layout("n/cu13", ("bin",)))
    assert [*listing(tree)] == ["bin/nvcc"]

    for layout, problem in (
        (Layout("elsewhere"), "nothing below 'elsewhere'"),
        (Layout("n/cu13", ("bin", "lib")), "has no 'lib'"),
    ):
        with pytest.raises(DriftError, match=problem):
            unpack(tmp_path, archive, layout)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_archives(tmp_path: Path, name: str) -> None:
    whole = FORMATS[name]()

    with pytest.raises(DriftError) as caught:
        unpack(tmp_path, {name: whole[: len(whole) // 2]})
    assert caught.value.reason is Reason.BAD_ARCHIVE


@pytest.mark.parametrize("name", ["x.rar", "x.deb", "x.tar.gz", "x.whl"])
def test_what_is_no_archive(tmp_path: Path, name: str) -> None:
    refused(tmp_path, name, b"Not an archive at all, but an error page." * 10)


@pytest.mark.parametrize("target", [b"b" * (1 << 26), b"\xff\xfe"], ids=["long", "no text"])
def test_a_link_in_a_wheel_leads_to_a_path(tmp_path: Path, target: bytes) -> None:
    data = wheel({"a": b"", "link": target}, {"link": stat.S_IFLNK | 0o777})
    tracemalloc.start()

    message = refused(tmp_path, "x.whl", data, packed=1 << 26)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "holds the link 'link', whose target is no path" in message
    assert peak < 1 << 24


@pytest.mark.parametrize(
    ("local", "central", "value", "problem"),
    [
        (6, 8, 1, "holds 'a', which is encrypted"),
        (8, 10, 99, "is damaged: That compression method is not supported"),
        (4, 6, 255, "is damaged: zip file version 25.5"),
    ],
)
def test_wheels_that_cannot_be_read(
    tmp_path: Path, local: int, central: int, value: int, problem: str
) -> None:
    data = bytearray(wheel({"a": b"text"}))
    data[local] = data[data.rindex(b"PK\x01\x02") + central] = value

    assert problem in refused(tmp_path, "x.whl", bytes(data))
