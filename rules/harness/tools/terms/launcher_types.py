"""The parameter types of compiled kernels, for which launchers are built ahead of runners."""

from __future__ import annotations

import re

MOST_LAUNCHERS = 16
"""The most launchers of a program: each takes the C compiler 0.2 s."""

_TYPE = r"(\*|constexpr|[iu](1|8|16|32|64)|fp16|bf16|fp32|fp64)"
_TYPES = re.compile(rf"{_TYPE}(,{_TYPE}){{0,199}}", re.ASCII)


def are_plain(types: str) -> bool:
    """Whether ``types`` is a list such as ``*,i32,fp32``, without tuples and descriptors."""
    return _TYPES.fullmatch(types) is not None
