"""Identifies kernels by their code, whatever their comments and spacing."""

from __future__ import annotations

import ast
import hashlib
import re

_C_TOKENS = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)""",
    re.DOTALL,
)
_BLANKS = re.compile(r"[ \t\f\v\r]+")


def digest(source: str, *, python: bool) -> str:
    """A digest that comments, blank lines and spacing do not change."""
    return hashlib.sha256(normal_form(source, python=python).encode(errors="replace")).hexdigest()


def normal_form(source: str, *, python: bool) -> str:
    """The text that is digested. Python that does not parse is taken as it is."""
    if not python:
        return _normal_c(source)
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


def _normal_c(source: str) -> str:
    bare = _C_TOKENS.sub(lambda match: match["text"] or " ", source)
    lines = (_BLANKS.sub(" ", line).strip() for line in bare.splitlines())
    return "\n".join(line for line in lines if line)
