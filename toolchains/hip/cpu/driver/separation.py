"""Which functions of a HIP source call which: kernels only device functions, the host no kernels.

To a compiler for the CPU all functions are the host's, so a kernel could sort by ``std::sort`` or
start threads, which no GPU can. Clang's own front end of HIP reads the source with our headers
(``hipcpu/checked.h``), makes no code, and says what a compiler for GPUs would say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from compiler import Compiler
from cpu_dialect import AS_WRITTEN
from diagnostics import translate
from faults import SourceFault
from kernel_library import write
from sources import MAIN, load

_PLACE = "checked"
_ACROSS = re.compile(r"call to __\w+__ function from __\w+__")
_WHY = (
    "note: a kernel calls only functions with __device__, and the host only others. "
    "The algorithms and threads of C++'s library are the host's."
)
_PRELUDE = ("-include", "hipcpu/checked.h", "-DHIPCPU_CHECKED")


def require_separation(
    source: Path,
    compiler: Compiler,
    directory: Path,
    *,
    include: Sequence[Path],
    options: Sequence[str],
    headers: Sequence[str],
) -> None:
    """Raise ``SourceFault`` where device code calls the host's, or the host's a device function.

    Args:
        directory: of the build.
        include: where the source's own headers are.
        options: those of the compilation that this goes with.
        headers: directories that messages leave out.

    A compiler that cannot read HIP says nothing.
    """
    sources = load(source, include, AS_WRITTEN)
    place = directory / _PLACE
    place.mkdir()
    write(sources, place)
    done = compiler.read_hip(MAIN, [*options, *_PRELUDE], place)
    if done.returncode:
        said = translate(done.messages, sources, (*headers, *compiler.prefixes))
        raise SourceFault(f"{said}\n{_WHY}" if _ACROSS.search(done.messages) else said)
