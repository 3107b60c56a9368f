"""Makes a kernel report its branches: a call before each, in optimised intermediate code.

The compiler's sanitizers know accesses to memory, and nothing of branches. The call has a name that
they may use, with an object that there never is: ``__tsan_vptr_update(null, whether it is taken)``.
Branches without a place in the source are the runtime's, as that of the loop over threads; others
are the compiler's own, which checks indices.
"""

from __future__ import annotations

import re

_BRANCH = re.compile(
    r"^  br i1 (?P<condition>%(?:[-\w.$]+|\"[^\"]*\")), label .*, (?P<place>!dbg !\d+).*$",
    re.MULTILINE,
)
_CHECKS = "!nosanitize"
_TOLD = "__tsan_vptr_update"
_DECLARED = f"declare void @{_TOLD}("


def told_branches(code: str) -> str:
    """Intermediate code that calls before each conditional branch of the author's.

    The call is said to leave the kernel's memory alone, so that accesses stay what they are.
    """
    count = iter(range(len(code)))
    edited = _BRANCH.sub(lambda branch: _call(branch, next(count)), code)
    if _DECLARED in edited:
        return edited
    return (
        f"{edited}\n{_DECLARED}ptr, ptr) nounwind willreturn memory(inaccessiblemem: readwrite)\n"
    )


def _call(branch: re.Match[str], number: int) -> str:
    if _CHECKS in branch.group():
        return branch.group()
    name, place = f"%kabuild.branch.{number}", branch["place"]
    taken = f"select i1 {branch['condition']}, ptr inttoptr (i64 1 to ptr), ptr null"
    return (
        f"  {name} = {taken}, {place}\n"
        f"  call void @{_TOLD}(ptr null, ptr {name}), {place}\n"
        f"{branch.group()}"
    )
