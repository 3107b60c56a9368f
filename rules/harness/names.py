"""Names in a task's declaration, which become C symbols, Python keyword arguments, config keys."""

from __future__ import annotations

import keyword
import re

from kabuild.rule import AttributeProblem

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 128
_CPP = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue
    co_await co_return co_yield decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename union unsigned
    using virtual void volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905 - a list of strings is a screen long
)
_OURS = frozenset({"dtype", "distribution", "stream", "workspace", "generator", "config"})
"""Names that kernel calls, references and configs use for other purposes."""


def check_name(name: str, what: str, path: tuple[str | int, ...]) -> None:
    """Refuse anything but an identifier of both C++ and Python. Raises AttributeProblem."""
    if not _IDENTIFIER.fullmatch(name) or len(name) > _LONGEST:
        raise AttributeProblem(
            f"'{name[:_LONGEST]}' is not a valid {what}", path, "a name is letters, digits and '_'"
        )
    if keyword.iskeyword(name) or name in _CPP:
        raise AttributeProblem(f"'{name}' is not a valid {what}: it is a keyword", path)


def check_argument(name: str, what: str, path: tuple[str | int, ...]) -> None:
    """``check_name`` for arguments that are passed by name. Raises AttributeProblem."""
    check_name(name, what, path)
    if name in _OURS:
        raise AttributeProblem(f"'{name}' is not a valid {what}: every call has its own", path)
