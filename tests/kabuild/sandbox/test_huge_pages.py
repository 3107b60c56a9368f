"""A process whose memory moved to huge pages has the same memory."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from kabuild.sandbox.huge_pages import use_huge_pages
from tests.kabuild.sandbox.boxes import call_in_fork

BYTES = 16 << 20


def huge_bytes() -> int:
    """The bytes of this process that lie in huge pages."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the kernel does not count huge pages")


def moved(policy: str, size: str | None = None) -> tuple[int, bool]:
    """How many bytes moved in a fork of this process, and whether the content stayed."""

    def work() -> str:
        memory = mmap.mmap(-1, BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        text = bytes(range(1, 255)) * (BYTES // 254)
        memory.write(text)
        before = huge_bytes()
        use_huge_pages(Path(policy), *([Path(size)] if size else []))
        return f"{huge_bytes() - before} {memory[: len(text)] == text}"

    count, same = call_in_fork(work).split()
    return int(count), same == "True"


def test_memory_moves_and_stays_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    count, same = moved(str(tmp_path / "enabled"))

    assert same
    if not count:
        pytest.skip("this kernel moves no memory to huge pages on request")
    assert count >= BYTES // 2


@pytest.mark.parametrize(
    ("policy", "size"),
    [("always madvise [never]\n", "2097152\n"), ("[always] madvise never\n", "unknown\n")],
    ids=["not wanted", "of unknown size"],
)
def test_memory_stays_where_it_is(tmp_path: Path, policy: str, size: str) -> None:
    (tmp_path / "enabled").write_text(policy)
    (tmp_path / "size").write_text(size)

    assert moved(str(tmp_path / "enabled"), str(tmp_path / "size")) == (0, True)


def test_a_kernel_without_huge_pages_is_no_error(tmp_path: Path) -> None:
    assert moved(str(tmp_path / "none")) == (0, True)


@pytest.mark.parametrize("name", [b"a\x0cb", b"a\x85b", b"a\xffb", b"a\nb", "a\u2028b".encode()])
def test_names_of_mapped_files_mean_nothing(tmp_path: Path, name: bytes) -> None:
    """A library may lie in any folder: the kernel's list of what is mapped has its name."""
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    place = os.path.join(os.fsencode(tmp_path), name)  # noqa: PTH118 - bytes
    with open(place, "wb+") as file:
        file.truncate(mmap.PAGESIZE)
        kept = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    assert moved(str(tmp_path / "enabled"))[1]
    kept.close()
