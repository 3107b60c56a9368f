"""Declarations in the forms in which kernels are written."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.toolchains.hip.support import Library, Load


@pytest.fixture(scope="module")
def dialect(load: Load) -> Library:
    return load("dialect")


def test_forms_of_kernels(dialect: Library) -> None:
    out = np.zeros(64, np.int32)
    dialect.run("launch_all_forms", out)
    assert (out == 2 * (1 + 2 + 4 + 8 + 16 + 32 + 64)).all()


def test_shared_memory_in_a_device_function_template(dialect: Library) -> None:
    out = np.arange(32, dtype=np.int32)
    dialect.run("launch_reverse", out)
    assert (out == np.arange(32)[::-1]).all()


def test_several_shared_variables(dialect: Library) -> None:
    out = np.zeros(64, np.int32)
    dialect.run("launch_many_shared", out)
    t = np.arange(64)
    assert (out == t + 100 + 2 * (63 - t)).all()


def test_dynamic_shared_memory_declared_outside_functions(dialect: Library) -> None:
    out = np.zeros(100, np.int32)
    dialect.run("launch_global_pool", out, 100)
    assert (out == 12 * np.arange(100)[::-1]).all()


def test_headers_of_the_standard_library(dialect: Library) -> None:
    out = np.zeros(64, np.int32)
    dialect.run("launch_standard_library", out)
    assert out.tolist() == [max(t, 3) + max(t, 5) + math.isqrt(t) + 3 + 1 for t in range(64)]
