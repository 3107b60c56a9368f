"""How NVIDIA's processors read HIP: what is refused, and the little that is rewritten.

* ``extern __shared__ T name[];`` inside a function → a pointer to the one array of dynamic shared
  memory: two such names of different types are an error in CUDA
* ``warpSize`` → a constant; fields of that name stay
* ``__ballot``, ``__any`` and ``__all`` → names that CUDA does not have already
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conditions import Undefined, active
from cuda_waves import refuse_waves_of_64
from faults import Position, source_fault
from grammar import scoped_tokens, without_alignment
from lexer import Chunk, Token
from sources import Dialect

_UNDEFINED = Undefined(
    frozenset({"__HIP_PLATFORM_AMD__", "__HIP_PLATFORM_HCC__", "__AMDGCN__", "__HCC__"}),
    ("__gfx", "__GFX", "__HIP_CPU_"),
)
_BUILTINS = """
    readfirstlane readlane ds_bpermute wave_barrier wavefrontsize s_barrier fence sched_barrier
    s_sleep s_setprio s_waitcnt rcpf rsqf sqrtf exp2f logf fmed3f
"""
_IMPLEMENTED_BUILTINS = frozenset(f"__builtin_amdgcn_{name}" for name in _BUILTINS.split())
_REFUSED = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"__builtin_amdgcn_w?mfma_.*|__builtin_amdgcn_\w*mfma\w*", "matrix core (MFMA) builtin"),
        (r"__builtin_amdgcn_\w*wmma\w*", "matrix core (WMMA) builtin"),
        (r"rocwmma", "matrix core library"),
        (r"__builtin_amdgcn_(mov|update)_dpp\w*|__hip_move_dpp\w*", "data parallel (DPP) builtin"),
        (r"__builtin_amdgcn_\w+", "builtin of AMD's compiler"),
        (r"__hip_ds_swizzle\w*", "data share swizzle"),
        (r"texture|hipTextureObject_t|hipCreateTextureObject|hipBindTexture\w*", "texture"),
        (r"surface|hipSurfaceObject_t|hipCreateSurfaceObject", "surface"),
        (r"hipModule\w+|hiprtc\w+", "loading of device code at run time"),
        (r"hipGraph\w*|hipStreamBeginCapture|hipStreamEndCapture", "graph"),
        (
            r"hipMemPool\w*|hipMallocArray|hipMalloc3D\w*|hipMallocFromPoolAsync",
            "memory pool or array",
        ),
        (r"hipIpc\w+|hipMemCreate|hipMemMap|hipMemAddressReserve", "shared or mapped memory"),
        (r"__DATE__|__TIME__|__TIMESTAMP__", "time of day in a compiled kernel"),
        (r"__COUNTER__", "counter that depends on headers"),
        (r"__has_embed|__has_include_next", "probe of the file system"),
    )
)
_LIBRARIES = re.compile(
    r"(hipcub|rocprim|rocthrust|rocblas|hipblas|hipblaslt|rocwmma|ck|ck_tile|hipfft|rocfft|"
    r"hiprand|rocrand|hipsparse|rocsparse|rocsolver|hipsolver|miopen|rccl|nccl|cutlass|cute|"
    r"torch|ATen|c10|pybind11|Python|cublas_v2|cublasLt|cudnn)(/.*|\.h|\.hpp|\.cuh)?"
)
_FIELD = frozenset({".", "->", "::"})
_RENAMED = {
    "warpSize": "::hipcuda::kWaveSize",
    "__ballot": "hipcuda_ballot",
    "__any": "hipcuda_any",
    "__all": "hipcuda_all",
}


def _refuse(chunks: Sequence[Chunk], path: str) -> None:
    kept = active(chunks, _UNDEFINED)
    for chunk in kept:
        for token in chunk.tokens:
            reason = _reason(token)
            if reason is not None:
                where = Position(path, token.line, token.column)
                raise source_fault(where, "unsupported", f"{reason} '{token.text}'")
    for token, scope in scoped_tokens(kept):
        if token.text == "<<<" and scope.on_device:
            where = Position(path, token.line, token.column)
            message = "dynamic parallelism: a kernel launched from device code"
            raise source_fault(where, "unsupported", message)
    refuse_waves_of_64(kept, path)


def _reason(token: Token) -> str | None:
    if token.kind != "name" or token.text in _IMPLEMENTED_BUILTINS:
        return None
    return next((reason for pattern, reason in _REFUSED if pattern.fullmatch(token.text)), None)


def _absent_library(header: str) -> str | None:
    match = _LIBRARIES.fullmatch(header)
    return match.group(1) if match else None


def _rewrite(chunks: Sequence[Chunk], _path: str) -> list[Chunk]:
    in_namespace = frozenset(token for token, scope in scoped_tokens(chunks) if scope.in_namespace)
    return [Chunk(tuple(_rewrite_tokens(c.tokens, in_namespace)), c.directive) for c in chunks]


def _rewrite_tokens(tokens: Sequence[Token], in_namespace: frozenset[Token]) -> list[Token]:
    out: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if token.text == "extern" and following == "__shared__" and token not in in_namespace:
            end = next((i for i in range(index, len(tokens)) if tokens[i].text == ";"), index)
            pointer = _dynamic_shared(tokens[index:end])
            if pointer:
                out += pointer
                index = end
                continue
        if token.text in _RENAMED and not (out and out[-1].text in _FIELD):
            token = token._replace(text=_RENAMED[token.text])
        out.append(token)
        index += 1
    return out


def _dynamic_shared(declaration: Sequence[Token]) -> list[Token]:
    """``extern __shared__ T name[]`` as a pointer; nothing for any other form of it."""
    first = declaration[0]
    body = without_alignment(declaration[2:])
    if len(body) < 4 or [token.text for token in body[-2:]] != ["[", "]"]:
        return []
    name, kind = body[-3], body[:-3]
    if name.kind != "name" or any(token.text in {"(", "["} for token in kind):
        return []
    kind = [kind[0]._replace(spaced=first.spaced), *kind[1:]]
    cast = [kind[0]._replace(spaced=False), *kind[1:]]
    return [
        *kind,
        *_spell(name, "*", "const"),
        name._replace(spaced=True),
        *_spell(name, "=", "reinterpret_cast", "<"),
        *cast,
        *_spell(name, "*", ">", "(", "hipcuda_dynamic_shared", ")"),
    ]


def _spell(place: Token, *texts: str) -> list[Token]:
    """Tokens of our own, which count as standing at ``place``."""
    return [Token("mark", text, place.line, place.column, spaced=True) for text in texts]


CUDA = Dialect(_refuse, _rewrite, _absent_library)
