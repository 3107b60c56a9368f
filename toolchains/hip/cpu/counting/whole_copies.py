"""Keeps the copies of vectors whole, in intermediate code that is not optimised yet.

A device moves a ``float4`` in one piece. Clang's optimiser moves its parts wherever they are used
on their own, and then there are as many accesses as parts. So copies of a known size become loads
and stores of the widest vectors that their alignment allows, which stay whole.
"""

from __future__ import annotations

import re

_COPY = re.compile(
    r"^  call void @llvm\.memcpy\.p0\.p0\.i64\("
    r"ptr (?:\w+ )*?align (?P<to_align>\d+) (?P<to>%[\w.]+), "
    r"ptr (?:\w+ )*?align (?P<from_align>\d+) (?P<from>%[\w.]+), "
    r"i64 (?P<bytes>\d+), i1 false\)(?P<rest>.*)$",
    re.MULTILINE,
)
_LINE = re.compile(r"!dbg !\d+")
_TYPES = {1: "i8", 2: "i16", 4: "<2 x i16>", 8: "<2 x i32>", 16: "<4 x i32>"}
"""By bytes; of the widths of vectors, types that are not split."""
_MOST_BYTES = 128


def whole_copies(code: str) -> str:
    """Intermediate code whose copies of up to 128 bytes are loads and stores of vectors."""
    count = iter(range(len(code)))
    return _COPY.sub(lambda copy: _moved(copy, next(count)), code)


def _moved(copy: re.Match[str], number: int) -> str:
    size = int(copy["bytes"])
    piece = min(int(copy["to_align"]), int(copy["from_align"]), size & -size, max(_TYPES))
    if not 0 < size <= _MOST_BYTES or piece not in _TYPES:
        return copy.group()
    steps = range(0, size, piece)
    return "\n".join(_piece(copy, f"kabuild.{number}.{at}", at, piece) for at in steps)


def _piece(copy: re.Match[str], name: str, at: int, size: int) -> str:
    line = _LINE.search(copy["rest"])
    place = f", {line.group()}" if line else ""
    kind = _TYPES[size]
    return "\n".join(
        (
            f"  %{name}.from = getelementptr inbounds i8, ptr {copy['from']}, i64 {at}{place}",
            f"  %{name}.value = load {kind}, ptr %{name}.from, align {size}{place}",
            f"  %{name}.to = getelementptr inbounds i8, ptr {copy['to']}, i64 {at}{place}",
            f"  store {kind} %{name}.value, ptr %{name}.to, align {size}{place}",
        )
    )
