"""What this platform does not have, refused by name before the compiler sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conditions import Undefined, active
from faults import Position, SourceFault, source_fault
from grammar import scoped_tokens
from lexer import Chunk, Token

# Macros that only a GPU's compiler defines.
_UNDEFINED = Undefined(
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
)

_BUILTINS = """
    readfirstlane readlane ds_bpermute wave_barrier wavefrontsize s_barrier fence sched_barrier
    s_sleep s_setprio s_waitcnt rcpf rsqf sqrtf exp2f logf fmed3f
"""
_IMPLEMENTED_BUILTINS = frozenset(f"__builtin_amdgcn_{name}" for name in _BUILTINS.split())

# The first pattern that matches a whole name decides.
_NAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"asm|__asm|__asm__", "inline assembly"),
        (r"__builtin_amdgcn_w?mfma_.*|__builtin_amdgcn_\w*mfma\w*", "matrix core (MFMA) builtin"),
        (r"__builtin_amdgcn_\w*wmma\w*", "matrix core (WMMA) builtin"),
        (r"rocwmma|nvcuda|wmma", "matrix core library"),
        (r"__builtin_amdgcn_(mov|update)_dpp\w*|__hip_move_dpp\w*", "data parallel (DPP) builtin"),
        (r"__builtin_amdgcn_\w+", "builtin of AMD's compiler"),
        (r"__builtin_(nvvm|ptx)_\w+|__nvvm_\w+", "builtin of NVIDIA's compiler"),
        (r"__hip_ds_swizzle\w*", "data share swizzle"),
        (r"texture|hipTextureObject_t|hipCreateTextureObject|hipBindTexture\w*", "texture"),
        (r"tex[123]D(fetch|Lod|Grad|Layered)?|tex1Dfetch|texCubemap", "texture fetch"),
        (r"surface|hipSurfaceObject_t|hipCreateSurfaceObject|surf[123]D(read|write)", "surface"),
        (r"this_grid|grid_group|this_multi_grid|multi_grid_group", "grid-wide cooperative group"),
        (r"coalesced_threads|coalesced_group", "coalesced cooperative group"),
        (r"hipLaunchCooperative\w+", "cooperative launch"),
        (r"hipModule\w+|hiprtc\w+", "loading of device code at run time"),
        (r"hipGraph\w*|hipStreamBeginCapture|hipStreamEndCapture", "graph"),
        (
            r"hipMemPool\w*|hipMallocArray|hipMalloc3D\w*|hipMallocFromPoolAsync",
            "memory pool or array",
        ),
        (r"hipIpc\w+|hipMemCreate|hipMemMap|hipMemAddressReserve", "shared or mapped memory"),
        (r"__nanosleep", "sleeping thread"),
        (r"__DATE__|__TIME__|__TIMESTAMP__", "time of day in a compiled kernel"),
        (r"__COUNTER__", "counter that depends on headers"),
        (r"__has_embed|__has_include_next", "probe of the file system"),
    )
)
_LIBRARIES = re.compile(
    r"(hipcub|rocprim|cub|thrust|rocthrust|rocblas|hipblas|hipblaslt|rocwmma|ck|ck_tile|hipfft|"
    r"rocfft|hiprand|rocrand|hipsparse|rocsparse|rocsolver|hipsolver|miopen|rccl|nccl|cutlass|cute|"
    r"torch|ATen|c10|pybind11|Python|cublas_v2|cuda\w*|mma)(/.*|\.h|\.hpp|\.cuh)?"
)


def refuse_unsupported(chunks: Sequence[Chunk], path: str) -> None:
    """Raise ``SourceFault`` for the first use of an unsupported feature.

    Code under a condition that is known to be false here, such as ``#ifdef __CUDA_ARCH__``,
    is not looked at.
    """
    kept = active(chunks, _UNDEFINED)
    for chunk in kept:
        for token in chunk.tokens:
            reason = _reason(token)
            if reason is not None:
                raise _fault(path, token, f"{reason} '{token.text}'")
    for token, scope in scoped_tokens(kept):
        if token.text == "<<<" and scope.on_device:
            raise _fault(path, token, "dynamic parallelism: a kernel launched from device code")


def unsupported_library(header: str) -> str | None:
    """The library of a header, if it does not exist here."""
    match = _LIBRARIES.fullmatch(header)
    return match.group(1) if match else None


def _reason(token: Token) -> str | None:
    if token.kind != "name" or token.text in _IMPLEMENTED_BUILTINS:
        return None
    for pattern, reason in _NAMES:
        if pattern.fullmatch(token.text):
            return reason
    return None


def _fault(path: str, token: Token, reason: str) -> SourceFault:
    return source_fault(Position(path, token.line, token.column), "unsupported", reason)
