"""The sanitizer: each mistake is found in its line, and code that only looks wrong is not."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from sanitize.findings import Finding, read_findings
from sanitize.places import Places

from tests.toolchains.hip.support import HERE, SUCCESS, Driver

SOURCE = HERE / "kernels" / "sanitizer.hip"
LAUNCH_FAILURE = 719

# Two tensors of 128 floats, each within more memory than it owns.
CALL = """
import ctypes, sys
runtime, library, function = sys.argv[1:]
rt = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
kernels = ctypes.CDLL(library)
rooms = [(ctypes.c_float * 4096)() for _ in range(2)]
pointers = [ctypes.c_void_p(ctypes.addressof(room) + 4096) for room in rooms]
for pointer, name, written in zip(pointers, (b"x", b"y"), (1, 0)):
    rt.hipcpu_sanitizer_buffer(pointer, ctypes.c_size_t(512), name, written)
for i in range(128):
    rooms[0][1024 + i] = i
print(kernels[function](*pointers, ctypes.c_int64(128)))
"""


@dataclass(frozen=True)
class Sanitizer:
    """An instrumented library with what is needed to run it."""

    runtime: Path
    library: Path

    def run(self, kernel: str) -> tuple[int, list[Finding]]:
        """What the kernel's function returned and what was found."""
        done = subprocess.run(
            [sys.executable, "-c", CALL, self.runtime, self.library, f"run_{kernel}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        places = Places.read(self.library.with_suffix(".places.json"))
        return int(done.stdout), read_findings(done.stderr, places)


@pytest.fixture(scope="session")
def sanitizer(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Sanitizer:
    folder = tmp_path_factory.mktemp("sanitizer")
    built = Sanitizer(folder / "libhipcpu.so", folder / "kernels.so")
    driver.build("runtime", "--sanitize", "-o", built.runtime)
    driver.build("kernel", "--sanitize", SOURCE, "-o", built.library)
    return built


@cache
def marked(kernel: str) -> set[int]:
    """The lines of the source that end with the kernel's mark."""
    lines = SOURCE.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith(f"  // {kernel}")}


@pytest.mark.parametrize(
    ("kernel", "kind", "said"),
    [
        ("write_past_tensor", "OUT_OF_BOUNDS", "0 bytes past the end of 'y' (512 bytes)"),
        ("write_past_tensor", "OUT_OF_BOUNDS", "block (0,0,0) thread (128,0,0)"),
        ("read_before_tensor", "OUT_OF_BOUNDS", "read of 4 bytes, 4 bytes before 'x'"),
        ("read_past_shared", "OUT_OF_BOUNDS", "past the end of __shared__ 'tile' (512 bytes)"),
        ("read_before_shared", "OUT_OF_BOUNDS", "4 bytes before __shared__ 'tile' (512 bytes)"),
        ("read_past_shared_of_template", "OUT_OF_BOUNDS", "past the end of __shared__ 'tile' (512"),
        ("write_past_dynamic", "OUT_OF_BOUNDS", "dynamic shared memory (508 bytes)"),
        ("write_past_local", "OUT_OF_BOUNDS", "index 4 is outside an array of type 'float[4]'"),
        (
            "read_output",
            "UNINITIALISED",
            "offset 0 of 'y' (512 bytes), which no thread has written",
        ),
        ("read_unwritten_shared", "UNINITIALISED", "thread (7,0,0)"),
        ("missing_barrier", "DATA_RACE", "no barrier orders the two"),
        ("barrier_after_only", "DATA_RACE", "__shared__ 'tile'"),
        ("adds_without_atomics", "DATA_RACE", "nothing orders the two blocks"),
        ("barrier_in_both_branches", "DIVERGENT_BARRIER", "and 3 others at sanitizer.hip:"),
        ("barrier_after_return", "DIVERGENT_BARRIER", "127 of the 128 threads"),
    ],
)
def test_a_mistake_is_found_in_its_lines(
    sanitizer: Sanitizer, kernel: str, kind: str, said: str
) -> None:
    """Kind, kernel, lines, threads and buffers are those that the source has."""
    _, findings = sanitizer.run(kernel)

    assert {finding.kind.value for finding in findings} == {kind}
    assert {finding.kernel for finding in findings} == {kernel}
    places = {place for f in findings for place in (f.place, f.other) if place}
    assert {place.file for place in places} == {"sanitizer.hip"}
    assert {place.line for place in places} == marked(kernel)
    assert any(said in finding.text for finding in findings)


def test_a_wrong_address_ends_the_kernel(sanitizer: Sanitizer) -> None:
    """Nothing is written where nothing belongs; the caller sees a failed launch."""
    assert sanitizer.run("write_past_tensor")[0] == LAUNCH_FAILURE


@pytest.mark.parametrize(
    "kernel",
    [
        "shared_in_template",
        "tiles_of_two_sizes",
        "wave_reduction",
        "last_block",
        "histogram",
        "same_value",
        "dynamic_tiles",
        "two_kernels",
    ],
)
def test_correct_code_is_left_alone(sanitizer: Sanitizer, kernel: str) -> None:
    """Waves, fences, atomics, equal writes and launches order accesses, too."""
    assert sanitizer.run(kernel) == (SUCCESS, [])


def test_only_the_pinned_compiler_can(tmp_path: Path) -> None:
    """A compiler without what this needs is named as the problem."""
    done = Driver("cxx:g++").run("kernel", "--sanitize", SOURCE, "-o", tmp_path / "out.so")

    assert done.returncode == 3
    assert "only the clang of the ziglang package can sanitize" in done.stderr


def test_the_library_does_not_depend_on_where_it_was_built(
    driver: Driver, sanitizer: Sanitizer, tmp_path: Path
) -> None:
    """Equal sources give equal bytes, and a table of places with names only."""
    copy = tmp_path / SOURCE.name
    copy.write_bytes(SOURCE.read_bytes())
    driver.build("kernel", "--sanitize", copy, "-o", tmp_path / "again.so")

    for name in (".so", ".places.json"):
        again = (tmp_path / "again.so").with_suffix(name).read_bytes()
        assert again == sanitizer.library.with_suffix(name).read_bytes()


def test_the_usual_runtime_has_no_sanitizer(runtime: Path) -> None:
    """What judges times is built without any of this."""
    library = ctypes.CDLL(str(runtime))

    assert not hasattr(library, "hipcpu_sanitizer_buffer")
    assert not hasattr(library, "__tsan_read4")
