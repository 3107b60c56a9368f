"""Which code is certainly not compiled here: ``#if 0`` and the branches for other compilers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lexer import Chunk


@dataclass(frozen=True)
class Undefined:
    """Macros that a platform's compiler never defines."""

    names: frozenset[str]
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        """Whether the macro is one of them."""
        return name in self.names or name.startswith(self.prefixes)


def active(chunks: Sequence[Chunk], undefined: Undefined) -> list[Chunk]:
    """The chunks without those that a known condition excludes. What is not known is kept."""
    kept: list[Chunk] = []
    # Per open conditional: whether the branch may be compiled, and whether its #else may.
    branches: list[tuple[bool, bool]] = []
    for chunk in chunks:
        words = [token.text for token in chunk.tokens[1:]] if chunk.directive else []
        keyword = words[0] if words else ""
        if keyword in {"if", "ifdef", "ifndef"}:
            branches.append(_evaluate(keyword, words[1:], undefined))
        elif keyword == "elif" and branches:
            branches[-1] = (branches[-1][1], branches[-1][1])
        elif keyword == "else" and branches:
            branches[-1] = (branches[-1][1], False)
        elif keyword == "endif" and branches:
            branches.pop()
        elif all(taken for taken, _ in branches):
            kept.append(chunk)
    return kept


def _evaluate(keyword: str, words: Sequence[str], undefined: Undefined) -> tuple[bool, bool]:
    """Whether the branch, and whether another branch, may be compiled."""
    expression = "".join(words)
    if keyword == "if":
        if expression in {"0", "1"}:
            return expression == "1", expression == "0"
        tests = [_defined_name(part) for part in expression.split("||")]
        if all(name is not None and name in undefined for name in tests):
            return False, True
        if any(_excludes(part, undefined) for part in expression.split("&&")):
            return False, True
        return True, True
    known_undefined = expression in undefined
    if keyword == "ifdef":
        return not known_undefined, True
    return True, not known_undefined


def _defined_name(expression: str) -> str | None:
    """``X`` of ``defined(X)`` or ``definedX`` (the words are joined), else None."""
    if not expression.startswith("defined"):
        return None
    return expression.removeprefix("defined").removeprefix("(").removesuffix(")")


def _excludes(expression: str, undefined: Undefined) -> bool:
    """Whether one operand of ``&&`` is known to be false."""
    name = _defined_name(expression)
    return expression == "0" or (name is not None and name.isidentifier() and name in undefined)
