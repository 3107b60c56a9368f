"""What kernels get to in the code that runs, compared with what they get to by the rules of HIP.

Two readers of the same text may still choose differently: HIP prefers functions of the caller's
side where C++ takes the better match, and knows nothing of pointers to functions. Threads are
refused however a kernel gets to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from intermediate import Function, read_module
from symbols import THREADS

_LAUNCHER = "hipcpu_launch"
_THREADS_OF_C = "pthread_"
_STRUCTOR = re.compile(r"([CD])[0-3](?=[EBI])")
"""Constructors and destructors: a compiler may take one for another."""
_LOCAL = re.compile(r"\$_|U[lt]")
"""In names of lambdas and the like, whose numbers depend on the reader."""
_OF_THREADS = "_ZNSt3__114__thread_proxy"
"""What the C++ library has threads begin with: its address goes nowhere else."""


def refused_use(compiled: str, device: str) -> str:
    """A compiler's message about the first function that kernels may not get to; empty if none is.

    ``compiled`` is the intermediate code of the compilation, ``device`` that of HIP's side of the
    device, both with line tables, from the same text.
    """
    module, known = read_module(compiled, _LAUNCHER), read_module(device, _LAUNCHER)
    module.taken = {name for name in module.taken if not name.startswith(_OF_THREADS)}
    roots = module.taken if "" in module.launched else module.launched
    if _LAUNCHER in module.taken:
        roots = roots | module.taken
    reached = module.reached(roots)
    for function in reached.values():
        for name in sorted(function.uses):
            if name.startswith(_THREADS_OF_C) or name in THREADS:
                return _message(function, f"a kernel gets to '{name}', of the host's threads")
    names = {_plain(name) for name in known.functions}
    places = {function.place for function in known.functions.values()}
    for function in _known(reached.values(), names, places):
        for used in module.used_by(function):
            if not _is_known(used, names, places):
                label = used.place[2] or used.name
                return _message(function, f"'{label}' is not a function of the device")
    return ""


def _known(
    functions: Iterable[Function], names: set[str], places: set[tuple[str, int, str]]
) -> Iterable[Function]:
    """Those that HIP has, too: not what our headers put around a kernel."""
    return (function for function in functions if _is_known(function, names, places))


def _is_known(function: Function, names: set[str], places: set[tuple[str, int, str]]) -> bool:
    if _LOCAL.search(function.name):
        return function.place in places
    return _plain(function.name) in names


def _plain(name: str) -> str:
    return _STRUCTOR.sub(r"\1", name)


def _message(function: Function, text: str) -> str:
    file, line, _ = function.place
    return f"{file}:{line}:1: error: {text}"
