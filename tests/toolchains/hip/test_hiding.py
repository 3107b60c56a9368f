"""What host code learns of device memory is counted, and polling is cheap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.testkit.c_compiler import compile_library
from tests.toolchains.hip.support import HERE, Completed, InProcess, Load

REFUSED = 77
PAGE = 4096
ALLOWED = 2 * PAGE  # of pinned memory, beyond what may be copied
LENT = 4 * PAGE

Learn = Callable[..., Completed]


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that hides memory, as a runner does."""
    path = tmp_path_factory.mktemp("judge") / "judge.so"
    return compile_library(path, [str(HERE / "kernels/hiding.c")])


@pytest.fixture
def learn(load: Load, judge: Path, in_process: InProcess) -> Learn:
    """``learn(call, most)``: makes one call, in which host code may copy ``most`` bytes."""

    def run(call: str, most: int) -> Completed:
        return in_process(f"""
k, judge = ctypes.CDLL({str(load("hiding").path)!r}), ctypes.CDLL({str(judge)!r})
judge.begin.restype = ctypes.c_void_p
lent = ctypes.c_void_p(judge.begin(ctypes.c_uint64({LENT}), ctypes.c_uint64({most})))
assert lent
print(k.{call}, flush=True)
os._exit(0)
""")

    return run


def _refused(done: Completed) -> bool:
    assert done.returncode in {0, REFUSED}, done.stderr
    assert done.returncode == REFUSED or done.stdout.split() == ["0"], done.stdout
    return done.returncode == REFUSED


@pytest.mark.parametrize("own", [0, 1, 1000])
def test_a_flag_in_pinned_memory_may_be_polled(learn: Learn, own: int) -> None:
    """A page is learnt once, then a word of 8 bytes at a time. What host code writes is its own."""
    times = (ALLOWED - PAGE) // 8 + 1

    assert not _refused(learn(f"poll({times}, 1, {own})", 0))
    assert _refused(learn(f"poll({times + 1}, 1, {own})", 0))


@pytest.mark.parametrize("words", [2, 3, 100, 1024])
def test_all_that_has_changed_in_a_page_counts(learn: Learn, words: int) -> None:
    each = (words + 1) // 2 * 8
    most = 9 * each - (ALLOWED - PAGE)

    if most >= 0:
        assert not _refused(learn(f"poll(10, {words}, 0)", most))
    assert _refused(learn(f"poll(10, {words}, 0)", max(most - 1, 0))) == (most > 0)


def test_a_page_that_is_forgotten_is_learnt_anew(learn: Learn) -> None:
    pages = 17 * PAGE

    assert not _refused(learn("poll_pages(17, 2)", 2 * pages - ALLOWED))
    assert _refused(learn("poll_pages(17, 2)", 2 * pages - ALLOWED - 1))
    assert not _refused(learn("poll_pages(16, 100)", 16 * (PAGE + 99 * 8) - ALLOWED))


def test_pages_may_be_freed_while_they_are_visible(learn: Learn) -> None:
    assert not _refused(learn("poll_new(100)", 100 * PAGE))


@pytest.mark.parametrize(("news", "most"), [(0, 8 + 9 * 2), (4, 8 + 5 * 2 + 4 * 8)])
def test_a_flag_that_is_copied_counts_less_until_it_changes(
    learn: Learn, news: int, most: int
) -> None:
    assert not _refused(learn(f"copy_flag(10, {news})", most))
    assert _refused(learn(f"copy_flag(10, {news})", most - 1))


@pytest.mark.parametrize("memory", ["device", "pinned"])
@pytest.mark.parametrize("before", [0, 16])
def test_a_copy_counts_wherever_it_begins(learn: Learn, memory: str, before: int) -> None:
    copy = f"copy_from_{memory}({before}, {before + 1000})"

    assert not _refused(learn(copy, before + 1000))
    assert _refused(learn(copy, before + 999))
    assert not _refused(learn(f"copy_from_{memory}(16, 16)", 0))


def test_each_row_counts_wherever_it_begins(learn: Learn) -> None:
    assert not _refused(learn("copy_rows(2, 3)", 12))
    assert _refused(learn("copy_rows(2, 3)", 11))
    assert not _refused(learn("copy_rows(4, 1)", 0))


@pytest.mark.parametrize("copy", ["copy_to_end", "copy_symbol"])
def test_a_copy_within_the_device_is_free_if_it_ends_there(learn: Learn, copy: str) -> None:
    assert not _refused(learn(f"{copy}(0)", 0))
    assert _refused(learn(f"{copy}(1)", 255))


def test_sizes_do_not_wrap(learn: Learn) -> None:
    invalid_pitch = 12

    assert _refused(learn("copy_too_much(lent)", 64))
    assert learn("copy_wide_rows(lent)", 64).stdout.split() == [str(invalid_pitch)]
