"""Launches: shapes, arguments, dynamic shared memory, symbols, errors."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tests.toolchains.hip.support import Library, Load

INVALID_VALUE = 1
INVALID_CONFIGURATION = 9


@pytest.fixture(scope="module")
def launch(load: Load) -> Library:
    return load("launch")


def test_template_kernel_in_namespace(launch: Library) -> None:
    out = np.zeros(1001, np.float32)
    launch.run("launch_fill", out, 2.5, 1000, None)
    assert (out[:1000] == 2.5).all()
    assert out[1000] == 0


def test_launch_inside_a_macro(launch: Library) -> None:
    out = np.zeros(100, np.int32)
    launch.run("launch_fill_from_macro", out, 7, 99)
    assert (out[:99] == 7).all()
    assert out[99] == 0


def test_template_argument_is_deduced(launch: Library) -> None:
    out = np.zeros(77)
    launch.run("launch_fill_deduced", out, ctypes.c_double(0.125), 77)
    assert (out == 0.125).all()


def test_kernel_name_with_template_arguments(launch: Library) -> None:
    given = np.arange(512, dtype=np.int32)
    out = np.zeros_like(given)
    launch.run("launch_reverse_tiles", given, out, 4)
    assert (out == given.reshape(4, 128)[:, ::-1].ravel()).all()


@pytest.mark.parametrize(
    ("grid", "block"),
    [((2, 3, 2), (4, 2, 3)), ((1, 1, 1), (1, 1, 1)), ((5, 1, 7), (1, 16, 64)), ((3, 2, 1), (33,))],
)
def test_three_dimensions(launch: Library, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    block = (*block, 1, 1)[:3]
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    out = np.full(blocks * threads, -1, np.int32)
    launch.run("launch_number_all", out, np.array(grid, np.uint32), np.array(block, np.uint32))
    expected = np.arange(blocks)[:, None] * 10000 + np.arange(threads)
    assert (out.reshape(blocks, threads) == expected).all()


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        ("launch_reverse_block", np.int32),
        ("launch_reverse_bytes", np.float32),
        ("launch_reverse_macro", np.float32),
        ("launch_indirectly", np.int32),
        ("launch_through_pointer", np.int32),
    ],
)
def test_dynamic_shared_memory(launch: Library, function: str, dtype: type) -> None:
    data: np.ndarray = np.arange(300).astype(dtype)
    launch.run(function, data, 300)
    assert (data == np.arange(300)[::-1]).all()


def test_dynamic_shared_memory_of_two_dimensions(launch: Library) -> None:
    data = np.arange(64, dtype=np.int32)
    launch.run("launch_transpose_rows", data)
    assert (data.reshape(8, 8) == np.arange(64).reshape(8, 8).T).all()


def test_null_is_a_pointer_argument(launch: Library) -> None:
    out = np.zeros(10, np.int32)
    launch.run("launch_null", out, 10)
    assert (out == 1).all()


def test_vector_types(launch: Library) -> None:
    out = np.zeros((3, 4), np.float32)
    launch.run("launch_vectors", out, 3)
    assert (out == [[12, 24, 6, 8 + thread] for thread in range(3)]).all()


def test_symbols(launch: Library) -> None:
    out = np.zeros(64, np.float32)
    launched = ctypes.c_int()
    values = np.array([1, 2, 3, 4], np.float32)
    launch.run("use_symbols", out, values, ctypes.byref(launched))
    assert (out == np.tile(values, 16)).all()
    assert launched.value == 128


def test_copy_past_the_end_of_a_symbol_is_refused(launch: Library, runtime: Path) -> None:
    assert launch("overrun_symbol", np.zeros(5, np.float32)) == INVALID_VALUE
    assert ctypes.CDLL(str(runtime)).hipGetLastError() == INVALID_VALUE


@pytest.mark.parametrize(
    ("grid", "block", "shared"), [(1, 1025, 0), (0, 64, 0), (1, 0, 0), (1, 64, (64 << 10) + 1)]
)
def test_bad_launch_is_an_error_once(
    launch: Library, grid: int, block: int, shared: int, runtime: Path
) -> None:
    assert launch("launch_with", grid, block, ctypes.c_size_t(shared)) == INVALID_CONFIGURATION
    assert ctypes.CDLL(str(runtime)).hipGetLastError() == 0


def test_only_extern_c_functions_are_exported(launch: Library) -> None:
    from elf import read_symbols

    names = [s.name for s in read_symbols(launch.path.read_bytes()) if s.defined]
    assert "launch_fill" in names
    assert not [name for name in names if name.startswith("_Z")]
    assert "counter" not in names


def test_runtime_exports_what_the_driver_expects(runtime: Path) -> None:
    from cpu_builds import RUNTIME, SWITCH
    from elf import read_symbols

    exported = {s.name for s in read_symbols(runtime.read_bytes()) if s.defined}
    assert exported == RUNTIME | SWITCH
