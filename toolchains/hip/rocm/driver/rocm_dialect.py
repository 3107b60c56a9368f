"""How AMD's processors read HIP: as it is; little is refused, and nothing rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conditions import Undefined, active
from faults import Position, source_fault
from lexer import Chunk
from sources import Dialect

_UNDEFINED = Undefined(
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
)
_REFUSED = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"__DATE__|__TIME__|__TIMESTAMP__", "time of day in a compiled kernel"),
        (r"__COUNTER__", "counter that depends on headers"),
        (r"__has_embed|__has_include_next", "probe of the file system"),
        (r"__builtin_(nvvm|ptx)_\w+|__nvvm_\w+", "builtin of NVIDIA's compiler"),
    )
)
_FOREIGN = re.compile(
    r"(torch|ATen|c10|pybind11|Python|cublas_v2|cuda\w*|cub|cutlass|cute|thrust|nccl|mma|nvcuda)"
    r"(/.*|\.h|\.hpp|\.cuh)?"
)


def _refuse(chunks: Sequence[Chunk], path: str) -> None:
    for chunk in active(chunks, _UNDEFINED):
        for token in chunk.tokens:
            if token.kind != "name":
                continue
            for pattern, reason in _REFUSED:
                if pattern.fullmatch(token.text):
                    where = Position(path, token.line, token.column)
                    raise source_fault(where, "unsupported", f"{reason} '{token.text}'")


def _unchanged(chunks: Sequence[Chunk], _path: str) -> list[Chunk]:
    return list(chunks)


def _absent_library(header: str) -> str | None:
    match = _FOREIGN.fullmatch(header)
    return match.group(1) if match else None


ROCM = Dialect(_refuse, _unchanged, _absent_library)
