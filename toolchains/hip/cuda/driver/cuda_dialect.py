"""How NVIDIA's processors read HIP: what is refused, and the little that is rewritten.

* ``extern __shared__ T name[];`` inside a function → a pointer to the one array of dynamic shared
  memory: two such names of different types are an error in CUDA
* ``warpSize`` → a constant; fields of that name stay
* ``__ballot``, ``__any`` and ``__all`` → names that CUDA does not have already
"""

from __future__ import annotations

from collections.abc import Sequence

from conditions import Undefined, active
from cuda_waves import refuse_waves_of_64
from grammar import scoped_tokens, without_alignment
from lexer import Chunk, Token
from sources import Dialect
from unsupported import (
    NOT_HERMETIC,
    OF_AMD,
    OF_THE_RUNTIME,
    PORTABLE_BUILTINS,
    Refusals,
    library_of,
)

_REFUSED = Refusals(
    Undefined(
        frozenset({"__HIP_PLATFORM_AMD__", "__HIP_PLATFORM_HCC__", "__AMDGCN__", "__HCC__"}),
        ("__gfx", "__GFX", "__HIP_CPU_"),
    ),
    (*OF_AMD, *OF_THE_RUNTIME, *NOT_HERMETIC, (r"rocwmma", "matrix core library")),
    PORTABLE_BUILTINS,
)
_absent_library = library_of(
    "hipcub rocprim rocthrust rocblas hipblas hipblaslt rocwmma ck ck_tile hipfft rocfft hiprand "
    "rocrand hipsparse rocsparse rocsolver hipsolver miopen rccl nccl cutlass cute torch ATen c10 "
    "pybind11 Python cublas_v2 cublasLt cudnn"
)
_FIELD = frozenset({".", "->", "::"})
_RENAMED = {
    "warpSize": "::hipcuda::kWaveSize",
    "__ballot": "hipcuda_ballot",
    "__any": "hipcuda_any",
    "__all": "hipcuda_all",
}


def _refuse(chunks: Sequence[Chunk], path: str) -> None:
    _REFUSED.check(chunks, path)
    refuse_waves_of_64(active(chunks, _REFUSED.undefined), path)


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
            # No declaration holds another: to look past it would take the square of them all.
            rest = range(index + 1, len(tokens))
            end = next((i for i in rest if tokens[i].text in {";", "extern"}), len(tokens))
            ends = end < len(tokens) and tokens[end].text == ";"
            pointer = _dynamic_shared(tokens[index:end]) if ends else []
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
