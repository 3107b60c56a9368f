"""How the CPU reads HIP: what it refuses, and what it rewrites."""

from __future__ import annotations

from conditions import Undefined
from rewriter import rewrite
from sources import Dialect
from unsupported import (
    NOT_HERMETIC,
    OF_AMD,
    OF_NVIDIA,
    OF_THE_RUNTIME,
    PORTABLE_BUILTINS,
    Refusals,
    library_of,
)

_REFUSED = Refusals(
    Undefined(
        frozenset(
            {
                "__CUDA_ARCH__",
                "__CUDACC__",
                "__NVCC__",
                "__HIP_PLATFORM_NVIDIA__",
                "__HIP_PLATFORM_NVCC__",
                "__HIP_DEVICE_COMPILE__",
                "__AMDGCN__",
                "__HCC__",
            }
        ),
        ("__gfx", "__GFX"),
    ),
    (
        (r"asm|__asm|__asm__", "inline assembly"),
        *OF_AMD,
        *OF_NVIDIA,
        *OF_THE_RUNTIME,
        *NOT_HERMETIC,
        (r"rocwmma|nvcuda|wmma", "matrix core library"),
        (r"tex[123]D(fetch|Lod|Grad|Layered)?|tex1Dfetch|texCubemap", "texture fetch"),
        (r"surf[123]D(read|write)", "surface"),
        (r"this_grid|grid_group|this_multi_grid|multi_grid_group", "grid-wide cooperative group"),
        (r"coalesced_threads|coalesced_group", "coalesced cooperative group"),
        (r"hipLaunchCooperative\w+", "cooperative launch"),
        (r"__nanosleep", "sleeping thread"),
    ),
    PORTABLE_BUILTINS,
)
_absent_library = library_of(
    r"hipcub rocprim cub thrust rocthrust rocblas hipblas hipblaslt rocwmma ck ck_tile hipfft "
    r"rocfft hiprand rocrand hipsparse rocsparse rocsolver hipsolver miopen rccl nccl cutlass cute "
    r"torch ATen c10 pybind11 Python cublas_v2 cuda\w* mma"
)

CPU = Dialect(_REFUSED.check, rewrite, _absent_library)
