"""Which functions of a HIP source call which: kernels only device functions, the host no kernels.

To a compiler for the CPU all functions are the host's, so a kernel could sort by ``std::sort`` or
start threads, which no GPU can. Clang's own front end of HIP reads the source with our headers
(``hipcpu/checked.h``), makes no code, and says what a compiler for GPUs would say.

It reads what the preprocessor has made of the source for the compiler. By macros, a source could
tell the two from each other, and show this one another kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compiler import Compiler
from diagnostics import translate
from faults import SourceFault
from kernel_library import require_tool
from preprocessed import refused_directive
from reached import refused_use
from sources import MAIN, Sources

PRELUDE = ("-include", "hipcpu/checked.h")
"""What the compilation needs, too: a source can tell which headers it has."""

_EXPANDED, _READ = "expanded.ii", "expanded.hip"
_COMPILED, _DEVICE = "compiled.ll", "device.ll"
_AS_IT_STANDS = "-undef"  # nothing is a macro any more, not even of the compiler's own
_LAUNCHED = re.compile(r"\(\s*hipcpu_arguments\s*\.\.\.\s*\)")
_LAUNCH = "<<<1, 1>>>"
_QUALIFIER = re.compile(r"^[ \t]*#pragma hipcpu (\w+)[ \t]*$", re.MULTILINE)
_FORCED = ["clang", "force_cuda_host_device"]
"""The one pragma that means something here only; our headers have it."""
_ACROSS = re.compile(
    r"call to __\w+__(?: __\w+__)? function from __\w+__|reference to __\w+__(?: __\w+__)? \w+"
)
_WHY = (
    "note: a kernel calls only functions with __device__, and the host only others. "
    "The algorithms and threads of C++'s library are the host's."
)


def require_separation(
    sources: Sources,
    compiler: Compiler,
    directory: Path,
    options: Sequence[str],
    headers: Sequence[str],
) -> None:
    """Raise ``SourceFault`` where device code calls the host's, or the host's a device function.

    Args:
        directory: of the build, with the sources.
        options: those of the compilation that this goes with.
        headers: directories that messages leave out.
    """
    require_tool(compiler.preprocess(MAIN, _EXPANDED, options, directory), "preprocess again")
    text = (directory / _EXPANDED).read_text("utf-8", "replace")
    text = _QUALIFIER.sub(r"__attribute__((\1))", text)
    prefixes = (*headers, *compiler.prefixes)
    # Read again, it would be obeyed. Nothing of the kind was there for the compiler.
    if refused := refused_directive(text, directory, _may_stand):
        raise SourceFault(translate(refused, sources, prefixes))
    (directory / _READ).write_text(_LAUNCHED.sub(rf"{_LAUNCH}\g<0>", text), "utf-8")
    again = [*(option for option in options if option not in PRELUDE), _AS_IT_STANDS]
    # They write what the compiler has made of a source of any length: side by side, for the wait.
    with ThreadPoolExecutor() as pool:
        device, host, made = (
            pool.submit(compiler.read_hip, _READ, again, directory, device=_DEVICE),
            pool.submit(compiler.read_hip, _READ, again, directory),
            pool.submit(compiler.intermediate, _EXPANDED, _COMPILED, again, directory),
        )
    for done, side in ((device.result(), _DEVICE), (host.result(), "")):
        if done.returncode:
            # The decision is made. With its macros, the source has the columns of its author.
            shown = [*options, "-DHIPCPU_EXPLAINED"]
            explained = compiler.read_hip(MAIN, shown, directory, device=side)
            messages = explained.messages if explained.returncode else done.messages
            said = translate(messages, sources, prefixes)
            raise SourceFault(f"{said}\n{_WHY}" if _ACROSS.search(messages) else said)
    require_tool(made.result(), "compile again")
    code = ((directory / name).read_text("utf-8", "replace") for name in (_COMPILED, _DEVICE))
    if refused := refused_use(*code):
        raise SourceFault(f"{translate(refused, sources, prefixes)}\n{_WHY}")


def _may_stand(words: Sequence[str]) -> bool:
    return list(words[:2]) != _FORCED
