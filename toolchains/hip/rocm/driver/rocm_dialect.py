"""How AMD's processors read HIP: as it is; little is refused, and nothing rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from conditions import Undefined
from lexer import Chunk
from sources import Dialect
from unsupported import NOT_HERMETIC, OF_NVIDIA, Refusals, library_of

_REFUSED = Refusals(
    Undefined(
        frozenset(
            {
                "__CUDA_ARCH__",
                "__CUDACC__",
                "__NVCC__",
                "__HIP_PLATFORM_NVIDIA__",
                "__HIP_PLATFORM_NVCC__",
            }
        ),
        ("__HIP_CPU_",),
    ),
    (*NOT_HERMETIC, *OF_NVIDIA),
    nested=True,
)
_absent_library = library_of(
    r"torch ATen c10 pybind11 Python cublas_v2 cuda\w* cub cutlass cute thrust nccl mma nvcuda"
)


def _unchanged(chunks: Sequence[Chunk], _path: str) -> list[Chunk]:
    return list(chunks)


ROCM = Dialect(_REFUSED.check, _unchanged, _absent_library)
