"""Results are read only from pages that a runner has for itself, and has written."""

# mypy: allow-untyped-defs, allow-untyped-calls

import ctypes
import errno
import mmap
import os
import socket
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from base.program import CandidateFault, MachineFault
from base.spec import parse_spec
from call_specs import spec_of
from correctness import gate
from runners import result_memory, warden
from runners.launcher import Launcher
from runners.result_memory import Misplaced, ResultMemory
from terms.reasons import Reason

PAGE = mmap.PAGESIZE
MAPPING = """
import ctypes, math, mmap, os
import numpy

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.mremap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 2, ctypes.c_int]
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
SHARED = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS
FIXED, HUGE = 0x10, 2 << 20
kept = []


def at(address, size):
    kept.append((ctypes.c_char * size).from_address(address))
    return torch.frombuffer(kept[-1], dtype=torch.float32)


def mapped(size, flags=PRIVATE, fd=-1, where=None):
    return libc.mmap(where, size, 3, flags, fd, 0)


def file(size):
    fd = os.open("/tmp/file", os.O_RDWR | os.O_CREAT)
    os.unlink("/tmp/file")
    os.ftruncate(fd, size)
    return fd


def copied(x, k, where):
    y = at(where, 4 * k * x.numel())
    y.view(k, -1).copy_(x.flatten())
    return y.view(-1, x.shape[1])
"""
REPEAT = {
    "call": "y = repeat(x, k)",
    "inputs": {"x": "T[rows, cols]"},
    "outputs": {"y": "T[k * rows, cols]"},
    "dims": {"rows": "4..4", "cols": "1024..1024", "k": "8..8"},
    "configs": [{"rows": 4, "cols": 1024, "k": 8}],
    "reference": """
        def inputs(config, generator):
            shape = config["rows"], config["cols"]
            return {"x": torch.randn(shape, generator=generator)}

        def reference(x, k, **_):
            return {"y": x.repeat(k, 1)}
        """,
    "right": """
        def repeat(x, k):
            return x.repeat(k, 1)
        """,
}
REPEATING = {
    "one copy, mapped side by side": """
        fd, size = file(4 * x.numel()), 4 * x.numel()
        place = mapped(k * size)
        for index in range(k):
            mapped(size, mmap.MAP_SHARED | FIXED, fd, place + index * size)
        os.close(fd)
        at(place, size).copy_(x.flatten())
        return at(place, k * size).view(-1, x.shape[1])
        """,
    "one copy, privately mapped side by side": """
        fd, size = file(4 * x.numel()), 4 * x.numel()
        at(mapped(size, mmap.MAP_SHARED, fd), size).copy_(x.flatten())
        place = mapped(k * size)
        for index in range(k):
            mapped(size, mmap.MAP_PRIVATE | FIXED, fd, place + index * size)
        os.close(fd)
        return at(place, k * size).view(-1, x.shape[1])
        """,
    "one copy of shared memory, moved side by side": """
        size = 4 * x.numel()
        first = mapped(size, SHARED)
        at(first, size).copy_(x.flatten())
        place = mapped(k * size)
        for index in range(k):
            assert libc.mremap(first, 0, size, 3, ctypes.c_void_p(place + index * size)) > 0
        return at(place, k * size).view(-1, x.shape[1])
        """,
    "a file": """
        fd = file(4 * k * x.numel())
        place = mapped(4 * k * x.numel(), mmap.MAP_SHARED, fd)
        os.close(fd)
        return copied(x, k, place)
        """,
    "shared memory": "return copied(x, k, mapped(4 * k * x.numel(), SHARED))",
    "private memory": "return copied(x, k, mapped(4 * k * x.numel()))",
    "private memory, mapped in two parts": """
        size = 4 * k * x.numel()
        place = mapped(size)
        mapped(size // 2, PRIVATE | FIXED, -1, place + size // 2)
        return copied(x, k, place)
        """,
    "the heap": "return x.repeat(k, 1)",
}


PAD = {
    "call": "y = pad(x, size)",
    "inputs": {"x": "T[n]"},
    "outputs": {"y": "T[size]"},
    "dims": {"n": "1024..1024", "size": "1048576..1048576"},
    "configs": [{"n": 1024, "size": 1048576}],
    "reference": """
        def inputs(config, generator):
            return {"x": torch.randn(config["n"], generator=generator)}

        def reference(x, size, **_):
            return {"y": torch.nn.functional.pad(x, (0, size - x.numel()))}
        """,
    "right": """
        def pad(x, size):
            return torch.nn.functional.pad(x, (0, size - x.numel()))
        """,
}
PADDING = {
    "pages that nobody touches": "y = at(mapped(4 * size), 4 * size)",
    "pages that are read only": "y = at(mapped(4 * size), 4 * size); assert y.sum() == 0",
    "huge pages that are read only": """
        place = -(-mapped(4 * size + HUGE) // HUGE) * HUGE
        libc.madvise(ctypes.c_void_p(place), ctypes.c_size_t(4 * size), 14)
        y = at(place, 4 * size)
        assert y[::1024].sum() == 0
        """,
    "pages given back": """
        place = mapped(4 * size)
        y = at(place, 4 * size).fill_(1)
        libc.madvise(ctypes.c_void_p(place), ctypes.c_size_t(4 * size), 4)
        """,
    "torch.zeros": "y = torch.zeros(size)",
    "torch.empty": "y = torch.empty(size); y[x.numel():] = 0",
    "a copy of what calloc gave": "y = torch.from_numpy(numpy.zeros(size, numpy.float32)).clone()",
    "pages that are written": "y = at(mapped(4 * size), 4 * size).zero_()",
    "huge pages that are written": """
        place = -(-mapped(4 * size + HUGE) // HUGE) * HUGE
        libc.madvise(ctypes.c_void_p(place), ctypes.c_size_t(4 * size), 14)
        y = at(place, 4 * size)
        assert y[::1024].sum() == 0
        y.zero_()
        """,
}
WRITTEN = [*PADDING][-5:]


def judged(launcher, folder, form, body):
    head = f"def {form['call'].removeprefix('y = ')}:\n"
    body = textwrap.indent(textwrap.dedent(body), "    ")
    spec = spec_of(folder, form, MAPPING + head + body)
    policy = {"distributions": ["default"], "edges": 0}
    return gate.run(parse_spec({**spec, "policy": policy}), launcher)


@pytest.mark.parametrize("way", REPEATING)
def test_each_byte_of_a_result_is_in_a_page_of_its_own(launcher, tmp_path, way):
    verdict = judged(launcher, tmp_path, REPEAT, REPEATING[way])

    own = way == "the heap" or way.startswith("private")
    assert verdict.reason == ("" if own else "OUTPUT_ALIASED"), verdict.detail
    assert own or "returned 'y' in memory that is not its own alone" in verdict.detail


@pytest.mark.parametrize("way", PADDING)
def test_zeros_of_a_result_are_written_before_the_clock_stops(launcher, tmp_path, way):
    body = textwrap.dedent(PADDING[way]).strip()
    verdict = judged(launcher, tmp_path, PAD, f"{body}\ny[:x.numel()] = x\nreturn y\n")

    own = way in WRITTEN
    assert verdict.reason == ("" if own else "INCOMPLETE_OUTPUT"), verdict.detail
    assert own or "returned 'y' in memory that it has not written" in verdict.detail


GAPS = {**PAD, "dims": {"n": "1024..1024", "size": "4..4"}}
GAPS["configs"] = [{"n": 1024, "size": 4}]
GAPS["outputs"] = {"y": "T[size, n]"}
GAPS["layout"] = {"y": "[16 * n, 1]"}
GAPS["reference"] = """
def inputs(config, generator):
    return {"x": torch.randn(config["n"], generator=generator)}

def reference(x, size, **_):
    return {"y": x.repeat(size, 1)}
"""


@pytest.mark.parametrize(("rows", "reason"), [(4, ""), (3, "INCOMPLETE_OUTPUT")])
def test_gaps_in_a_declared_layout_need_no_writing(launcher, tmp_path, rows, reason):
    body = f"""
    place = mapped(4 * 16 * size * x.numel())
    y = at(place, 4 * 16 * size * x.numel()).view(size, -1)[:, :x.numel()]
    y[:{rows}] = x
    return y
    """

    assert judged(launcher, tmp_path, GAPS, body).reason == reason


GIVEN = {**REPEAT, "call": "y = repeat(x, k, z)"}
GIVEN["outputs"] = {"z": "T[k * rows, cols]", "y": "T[k * rows, cols]"}
GIVEN["reference"] = """
def inputs(config, generator):
    return {"x": torch.randn(config["rows"], config["cols"], generator=generator)}

def reference(x, k, **_):
    return {"y": x.repeat(k, 1), "z": x.repeat(k, 1)}
"""
INTO = {
    "the output that was given": "z.copy_(x.repeat(k, 1))\nreturn z",
    "a page of it, mapped side by side": """
        z.copy_(x.repeat(k, 1))
        size, first = 4 * x.numel(), z.data_ptr()
        place = mapped(k * size)
        for index in range(k):
            assert libc.mremap(first, 0, size, 3, ctypes.c_void_p(place + index * size)) > 0
        return at(place, k * size).view(-1, x.shape[1])
        """,
}


@pytest.mark.parametrize("way", INTO)
def test_a_result_may_lie_in_a_given_output_once(launcher, tmp_path, way):
    verdict = judged(launcher, tmp_path, GIVEN, INTO[way])

    assert verdict.reason == ("" if "given" in way else "OUTPUT_ALIASED"), verdict.detail


NAMED = """
for code in (10, 11, 12, 28, 133, 0x2028):
    fd = os.open(f"/tmp/a{chr(code)}b", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 4096)
    kept.append(mmap.mmap(fd, 4096))
fd = os.open(b"/tmp/\\xff\\x85 00:00 0", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 4096)
kept.append(mmap.mmap(fd, 4096))
return FACTOR * x.repeat(k, 1)
"""


@pytest.mark.parametrize(("factor", "reason"), [("1", ""), ("2", "WRONG_RESULT")])
def test_names_of_mapped_files_mean_nothing(launcher, tmp_path, factor, reason):
    """They ended the warden, and so the verdict: no line of the list has the form it seems to."""
    verdict = judged(launcher, tmp_path, REPEAT, NAMED.replace("FACTOR", factor))

    assert verdict.reason == reason, verdict.detail


ODD = [ValueError("a line"), OverflowError(), KeyError(1), ProcessLookupError(3, "gone")]
LACKING = [MemoryError(), OSError(errno.EMFILE, "no file"), OSError(errno.ENOMEM, "no memory")]


@pytest.mark.parametrize("command", ["read", "count", "obey"])
@pytest.mark.parametrize("error", [*ODD, *LACKING], ids=repr)
def test_what_a_runner_makes_of_its_warden_is_its_own_fault(monkeypatch, command, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(warden._Ward, command, fails)
    judge, sandbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd = os.memfd_create("ranges")
    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(warden.supervise, os.getpid(), sandbox.detach())
        link = warden.Warden(judge)
        calls = {"read": lambda: link.read(fd, fd, 0), "count": link.count, "obey": link.freeze}
        with pytest.raises(MachineFault if error in LACKING else CandidateFault) as caught:
            calls[command]()
        link.close()
        assert serving.exception() is (error if error in LACKING else None)
    os.close(fd)
    assert error in LACKING or getattr(caught.value, "reason", None) is Reason.CRASH


def test_without_the_kernels_lists_nothing_is_read_in_place(monkeypatch, tmp_path):
    """Then results are copied under the clock: the zeros of fresh pages are made there."""

    def refuses(*_):
        raise FileNotFoundError(errno.ENOENT, "no list of pages")

    monkeypatch.setattr(warden, "ResultMemory", refuses)
    with Launcher.start() as inherited:  # forked from here
        verdict = judged(inherited, tmp_path, PAD, "return at(mapped(4 * size), 4 * size)")
        copied = judged(
            inherited, tmp_path, PAD, "y = at(mapped(4 * size), 4 * size)\ny[:1024] = x\nreturn y"
        )

    assert (verdict.reason, copied.reason) == ("WRONG_RESULT", "")


@pytest.fixture
def memory():
    """Three pages of private memory, of which the last was never written."""
    place = mmap.mmap(-1, 3 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    place[: 2 * PAGE] = b"x" * 2 * PAGE
    return place


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def found(ranges, lent=()):
    with closing(ResultMemory(os.getpid(), lent)) as places:
        return places.misplaced(ranges)


def test_every_page_of_a_range_counts(memory):
    first = address(memory)

    assert found([(first, 1), (first + 2 * PAGE - 1, 1), (first, 2 * PAGE), (first, 0)]) is None
    assert found([(first, 1), (first + 2 * PAGE - 1, 2)]) == (Misplaced.UNWRITTEN, 1)
    assert found([(first + 2 * PAGE + 5, 1), (first, 1)]) == (Misplaced.UNWRITTEN, 0)
    assert found([(first, 1), (0, 8)]) == (Misplaced.ABSENT, 1)
    assert found([((1 << 63) - 8, 8)]) == (Misplaced.ABSENT, 0)


def test_a_small_object_lies_in_a_page_that_was_written():
    small = ctypes.create_string_buffer(16)

    assert found([(ctypes.addressof(small), 16)]) is None


def test_a_lent_file_is_read_through_shared_mappings_only():
    fd = os.memfd_create("lent")
    os.ftruncate(fd, PAGE)
    shared, private = (mmap.mmap(fd, PAGE, flags) for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE))
    private[:1] = b"x"

    assert found([(address(shared), PAGE)]) == (Misplaced.BARRED, 0)
    assert found([(address(shared), PAGE)], [fd]) is None
    assert found([(address(private), PAGE)], [fd]) == (Misplaced.BARRED, 0)
    os.close(fd)


def test_a_list_of_mappings_has_a_limit(monkeypatch):
    """Names of any length can be mapped many times, and the warden has no limit of memory."""
    monkeypatch.setattr(result_memory, "_MOST_BYTES", 100)

    with pytest.raises(ValueError, match="more than 100 bytes of mappings"):
        found([])
