"""Refuses names and headers that a platform does not have, before its compiler sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from conditions import Undefined, active
from faults import Position, source_fault
from grammar import scoped_tokens
from lexer import Chunk, Token

Row = tuple[str, str]
"""A regular expression for whole names, and what they are."""

NOT_HERMETIC: tuple[Row, ...] = (
    (r"__DATE__|__TIME__|__TIMESTAMP__", "time of day in a compiled kernel"),
    (r"__COUNTER__", "counter that depends on headers"),
    (r"__has_embed|__has_include_next", "probe of the file system"),
)
OF_NVIDIA: tuple[Row, ...] = (
    (r"__builtin_(nvvm|ptx)_\w+|__nvvm_\w+", "builtin of NVIDIA's compiler"),
)
OF_AMD: tuple[Row, ...] = (
    (r"__builtin_amdgcn_w?mfma_.*|__builtin_amdgcn_\w*mfma\w*", "matrix core (MFMA) builtin"),
    (r"__builtin_amdgcn_\w*wmma\w*", "matrix core (WMMA) builtin"),
    (r"__builtin_amdgcn_(mov|update)_dpp\w*|__hip_move_dpp\w*", "data parallel (DPP) builtin"),
    (r"__builtin_amdgcn_\w+", "builtin of AMD's compiler"),
    (r"__hip_ds_swizzle\w*", "data share swizzle"),
)
OF_THE_RUNTIME: tuple[Row, ...] = (
    (r"texture|hipTextureObject_t|hipCreateTextureObject|hipBindTexture\w*", "texture"),
    (r"surface|hipSurfaceObject_t|hipCreateSurfaceObject", "surface"),
    (r"hipModule\w+|hiprtc\w+", "loading of device code at run time"),
    (r"hipGraph\w*|hipStreamBeginCapture|hipStreamEndCapture", "graph"),
    (r"hipMemPool\w*|hipMallocArray|hipMalloc3D\w*|hipMallocFromPoolAsync", "memory pool or array"),
    (r"hipIpc\w+|hipMemCreate|hipMemMap|hipMemAddressReserve", "shared or mapped memory"),
)
_DEFINED = """
    readfirstlane readlane ds_bpermute wave_barrier wavefrontsize s_barrier fence sched_barrier
    s_sleep s_setprio s_waitcnt rcpf rsqf sqrtf exp2f logf fmed3f
"""
PORTABLE_BUILTINS = frozenset(f"__builtin_amdgcn_{name}" for name in _DEFINED.split())
"""Builtins of AMD's compiler that the headers of other platforms define."""


@dataclass(frozen=True)
class Refusals:
    """The names that a platform refuses.

    Attributes:
        undefined: macros that its compiler never defines: code under them is not checked.
        rows: the first row that matches a name decides.
        defined: names that are accepted, although a row matches them.
        nested: whether device code may launch kernels.
    """

    undefined: Undefined
    rows: tuple[Row, ...]
    defined: frozenset[str] = frozenset()
    nested: bool = False

    def check(self, chunks: Sequence[Chunk], path: str) -> None:
        """Raise ``SourceFault`` for the first use of a refused name, or a nested launch."""
        kept = active(chunks, self.undefined)
        for chunk in kept:
            for token in chunk.tokens:
                if reason := self._reason(token):
                    _refuse(path, token, f"{reason} '{token.text}'")
        for token, scope in () if self.nested else scoped_tokens(kept):
            if token.text == "<<<" and scope.on_device:
                _refuse(path, token, "dynamic parallelism: a kernel launched from device code")

    @cached_property
    def _patterns(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        return tuple((re.compile(pattern), reason) for pattern, reason in self.rows)

    def _reason(self, token: Token) -> str:
        if token.kind != "name" or token.text in self.defined:
            return ""
        found = (reason for pattern, reason in self._patterns if pattern.fullmatch(token.text))
        return next(found, "")


def library_of(names: str) -> Callable[[str], str | None]:
    """A function that gives the library of a header, if it is one of ``names``, split at blanks."""
    pattern = re.compile(rf"({'|'.join(names.split())})(/.*|\.h|\.hpp|\.cuh)?")

    def find(header: str) -> str | None:
        match = pattern.fullmatch(header)
        return match.group(1) if match else None

    return find


def _refuse(path: str, token: Token, what: str) -> None:
    raise source_fault(Position(path, token.line, token.column), "unsupported", what)
