"""Which code is certainly not compiled here: ``#if 0`` and the branches for other compilers."""

from __future__ import annotations

from collections.abc import Sequence

from lexer import Chunk

# Macros that only a GPU's compiler defines.
_NEVER_DEFINED = frozenset(
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
)
_NEVER_DEFINED_PREFIXES = ("__gfx", "__GFX")


def active(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks without those that a known condition excludes. What is not known is kept."""
    kept: list[Chunk] = []
    # Per open conditional: whether the branch may be compiled, and whether its #else may.
    branches: list[tuple[bool, bool]] = []
    for chunk in chunks:
        words = [token.text for token in chunk.tokens[1:]] if chunk.directive else []
        keyword = words[0] if words else ""
        if keyword in {"if", "ifdef", "ifndef"}:
            branches.append(_evaluate(keyword, words[1:]))
        elif keyword == "elif" and branches:
            branches[-1] = (branches[-1][1], branches[-1][1])
        elif keyword == "else" and branches:
            branches[-1] = (branches[-1][1], False)
        elif keyword == "endif" and branches:
            branches.pop()
        elif all(taken for taken, _ in branches):
            kept.append(chunk)
    return kept


def _evaluate(keyword: str, words: Sequence[str]) -> tuple[bool, bool]:
    """Whether the branch, and whether another branch, may be compiled."""
    expression = "".join(words)
    if keyword == "if":
        if expression in {"0", "1"}:
            return expression == "1", expression == "0"
        tests = [_defined_name(part) for part in expression.split("||")]
        if all(name is not None and _never_defined(name) for name in tests):
            return False, True
        if any(_excludes(part) for part in expression.split("&&")):
            return False, True
        return True, True
    known_undefined = _never_defined(expression)
    if keyword == "ifdef":
        return not known_undefined, True
    return True, not known_undefined


def _defined_name(expression: str) -> str | None:
    """``X`` of ``defined(X)`` or ``definedX`` (the words are joined), else None."""
    if not expression.startswith("defined"):
        return None
    return expression.removeprefix("defined").removeprefix("(").removesuffix(")")


def _excludes(expression: str) -> bool:
    """Whether one operand of ``&&`` is known to be false."""
    name = _defined_name(expression)
    return expression == "0" or (name is not None and name.isidentifier() and _never_defined(name))


def _never_defined(name: str) -> bool:
    return name in _NEVER_DEFINED or name.startswith(_NEVER_DEFINED_PREFIXES)
