"""HIP for NVIDIA's processors, compiled for real; nothing runs, and no GPU is needed."""

from __future__ import annotations

import pytest

from tests.toolchains.hip_cuda.support import CudaDriver, find_driver


@pytest.fixture(scope="session")
def cuda_driver() -> CudaDriver:
    return find_driver()
