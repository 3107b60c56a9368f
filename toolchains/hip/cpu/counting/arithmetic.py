"""Makes a kernel report its arithmetic: calls at the end of each block of optimised code.

The compiler's sanitizers know accesses to memory, and nothing of arithmetic. The call has a name
that they may use, ``__tsan_vptr_read``, with an address that nothing has: a flag, the kind, and
how many. What has no place in the source is the runtime's or the compiler's own, which checks
indices.
"""

from __future__ import annotations

import re
from collections import Counter

KINDS = ("f64", "f32", "f16", "special", "conversion", "integer")
"""In the order of their numbers, which ``observer.cpp`` has too."""

FLAG = -(1 << 63)
_TOLD = "__tsan_vptr_read"
_DECLARED = f"declare void @{_TOLD}("
_CHECKS = "!nosanitize"
_LOCATION = re.compile(
    r"^(?P<id>!\d+) = (?:distinct )?!DILocation\(line: (?P<line>\d+)(?:, column: \d+)?"
    r"(?P<where>[^)]*)\)",
    re.MULTILINE,
)
_INSTRUCTION = re.compile(
    r"^  %[^=]+ = (?:(?:tail|notail|musttail) )?(?P<name>[a-z]+) (?P<rest>.*), !dbg (?P<place>!\d+)"
)
_TERMINATORS = ("  br ", "  ret ", "  switch ", "  unreachable", "  indirectbr ")
_VECTOR = re.compile(r"<(?P<count>\d+) x (?P<type>\w+)>")
_TYPE = re.compile(r"\b(?:double|float|half|i\d+)\b")
_CALLED = re.compile(r"@(?P<name>[\w.]+)\(")
_FLOATS = {"double": "f64", "float": "f32", "half": "f16"}
_FLOATING = frozenset({"fadd", "fsub", "fmul", "fneg", "fcmp"})
_SPECIAL = frozenset({"fdiv", "frem"})
_CONVERSIONS = frozenset({"fptrunc", "fpext", "sitofp", "uitofp", "fptosi", "fptoui"})
_INTEGER = frozenset(
    "add sub mul udiv sdiv urem srem shl lshr ashr and or xor icmp".split()  # noqa: SIM905
)
_FUSED = frozenset({"llvm.fma", "llvm.fmuladd", "fma", "fmaf"})
_PLAIN = frozenset(
    "llvm.maxnum llvm.minnum llvm.maximum llvm.minimum fmax fmaxf fmin fminf".split()  # noqa: SIM905
)
_FUNCTIONS = frozenset(
    "sqrt rsqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p pow sin cos tan sincos asin acos "  # noqa: SIM905
    "atan atan2 sinh cosh tanh asinh acosh atanh erf erfc lgamma tgamma hypot fmod".split()
)


def told_arithmetic(code: str) -> str:
    """Intermediate code in which each block reports its operations by kind and line.

    The calls are said to leave the kernel's memory alone, so that accesses stay what they are.
    """
    lines = {found["id"]: f"{found['line']}{found['where']}" for found in _LOCATION.finditer(code)}
    edited: list[str] = []
    done: Counter[tuple[str, str]] = Counter()
    places: dict[str, str] = {}
    for text in code.split("\n"):
        if text.startswith(_TERMINATORS) and done:
            edited += [_call(kind, count, places[line]) for (line, kind), count in done.items()]
            done.clear()
            places.clear()
        edited.append(text)
        if (computed := _computed(text)) is not None:
            kind, count, place = computed
            line = lines.get(place, place)
            done[line, kind] += count
            places.setdefault(line, place)
    if any(text.startswith(_DECLARED) for text in edited):
        return "\n".join(edited)
    effects = "nounwind willreturn memory(inaccessiblemem: readwrite)"
    return "\n".join([*edited, f"{_DECLARED}ptr) {effects}", ""])


def _call(kind: str, count: int, place: str) -> str:
    told = FLAG | KINDS.index(kind) << 32 | count
    return f"  call void @{_TOLD}(ptr inttoptr (i64 {told} to ptr)), !dbg {place}"


def _computed(text: str) -> tuple[str, int, str] | None:
    """Kind, operations and place of an instruction; None where it computes nothing."""
    found = _INSTRUCTION.match(text)
    if found is None or _CHECKS in text:
        return None
    name, rest = found["name"], found["rest"]
    kind = _called(rest) if name == "call" else _kind(name, rest)
    if kind is None:
        return None
    vector = _VECTOR.search(rest)
    lanes = int(vector["count"]) if vector else 1
    return kind[0], kind[1] * lanes, found["place"]


def _kind(name: str, rest: str) -> tuple[str, int] | None:
    if name in _FLOATING:
        return _of_type(rest)
    if name in _SPECIAL:
        return "special", 1
    if name in _CONVERSIONS:
        return "conversion", 1
    if name not in _INTEGER:
        return None
    of = _TYPE.search(rest)
    return ("integer", 1) if of and of.group() != "i1" else None


def _called(rest: str) -> tuple[str, int] | None:
    """Of a function of mathematics: two operations for a multiplication fused with an addition."""
    called = _CALLED.search(rest)
    if called is None:
        return None
    name = re.sub(r"\.(?:v\d+)?[fi]\d+$", "", called["name"])
    if name in _FUSED | _PLAIN:
        of = _of_type(rest)
        return (of[0], 2 if name in _FUSED else 1) if of else None
    bare = name.removeprefix("llvm.")
    return ("special", 1) if bare in _FUNCTIONS or bare.removesuffix("f") in _FUNCTIONS else None


def _of_type(rest: str) -> tuple[str, int] | None:
    of = _TYPE.search(rest)
    return (_FLOATS[of.group()], 1) if of and of.group() in _FLOATS else None
