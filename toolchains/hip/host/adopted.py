"""A g++ or clang++ of the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from compiler import (
    BASELINE,
    COMMON,
    Completed,
    Link,
    run_tool,
    write_version_script,
)
from elf import Machine
from inline_assembly import refusal_anywhere
from preprocessed import PRAGMA, refused_directive, refused_file
from sources import HEADERS, MAIN
from symbols import RENAMED, compiler_support

_OPTIONS = (*COMMON, "-fno-semantic-interposition")
_EXPANDED, _FILES, _ASSEMBLY, _QUESTIONS = "shown.ii", "shown.d", "shown.s", "asked.cpp"
NO_PROBES = tuple(
    f"-D{name}(x)=0" for name in ("__has_include", "__has_include_next", "__has_embed")
)
"""Hides what is installed on this machine from ``__has_include``, also inside macros."""
_PROBE = re.compile(r'\b__has_include\s*\(\s*(<[^>\n]+>|"[^"\n]+")\s*\)')
_MOST_ASKED = 200
_SHOWN_PRAGMAS = f"-D_Pragma(x)={PRAGMA}(x)"


class AdoptedCompiler:
    """A g++ or clang++ of the machine, with the machine's headers and libraries.

    The expansions of a kernel's macros are checked first, then the assembly, where a name may be
    anything.
    """

    prefixes: tuple[str, ...] = ("/usr/include/", "/usr/lib/")
    kernel_options: tuple[str, ...] = ()
    reads_hip = False

    def __init__(self, path: str, machine: Machine) -> None:
        self.machine = machine
        self.own_symbols = compiler_support(machine) | RENAMED
        self._examining = Lock()
        self._path = path

    def compile(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file, or assemble one whose name ends with ``.S``."""
        if source == MAIN:
            return self._compile_kernel(output, options, cwd)
        command = [self._path, BASELINE[self.machine], *options]
        if not source.endswith(".S"):
            command += [*_OPTIONS, "-x", "c++"]
        return run_tool([*command, "-c", source, "-o", output], cwd)

    def preprocess(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Not asked for."""
        raise NotImplementedError

    def intermediate(
        self, source: str, output: str, options: Sequence[str], cwd: Path
    ) -> Completed:
        """Not asked for."""
        raise NotImplementedError

    def read_hip(
        self, source: str, options: Sequence[str], cwd: Path, *, device: str = ""
    ) -> Completed:
        """Not asked for: g++ does not know HIP, and a clang may have been built without it."""
        raise NotImplementedError

    def _compile_kernel(self, output: str, options: Sequence[str], cwd: Path) -> Completed:
        command = [self._path, BASELINE[self.machine], *options, *_OPTIONS, *NO_PROBES, "-x", "c++"]
        done = self.examine(command, cwd)
        return done if done.returncode else self.assemble(command, MAIN, output, cwd)

    def examine(self, command: Sequence[str], cwd: Path) -> Completed:
        """Check the expansions of a kernel's macros, by a preprocessor's options."""
        with self._examining:
            if refusal := self._answer_probes([*command, "-E", "-P"], cwd):
                return Completed(1, refusal)
            shown = ["-E", _SHOWN_PRAGMAS, "-MD", "-MF", _FILES, "-o", _EXPANDED]
            done = run_tool([*command, *shown, MAIN], cwd)
            if done.returncode:
                return done
            text = (cwd / _EXPANDED).read_text(errors="replace")
            read = (cwd / _FILES).read_text(errors="replace")
        refusal = refused_directive(text, cwd) or refused_file(read, command, self.prefixes)
        return Completed(1, refusal) if refusal else done

    def assemble(self, command: Sequence[str], source: str, output: str, cwd: Path) -> Completed:
        """Compile in two steps, and look at the assembly between them."""
        done = run_tool([*command, "-S", source, "-o", _ASSEMBLY], cwd)
        if done.returncode:
            return done
        if refusal_anywhere((cwd / _ASSEMBLY).read_text(errors="replace"), MAIN):
            run_tool([*command, "-g1", "-S", source, "-o", _ASSEMBLY], cwd)  # now with its lines
            assembly = (cwd / _ASSEMBLY).read_text(errors="replace")
            return Completed(1, refusal_anywhere(assembly, MAIN))
        return run_tool([self._path, "-c", _ASSEMBLY, "-o", output], cwd)

    def _answer_probes(self, command: Sequence[str], cwd: Path) -> str:
        """Replace each ``__has_include`` of a name in a source by its answer.

        Each name takes a run of the compiler: a message about a source with too many of them.
        """
        files = [cwd / MAIN, *(path for path in (cwd / HEADERS).rglob("*") if path.is_file())]
        texts = {path: path.read_text("utf-8") for path in files}
        asked = sorted({found[1] for text in texts.values() for found in _PROBE.finditer(text)})
        if not asked:
            return ""
        if len(asked) > _MOST_ASKED:
            return f"{MAIN}:1:1: error: it asks for {len(asked)} headers, at most {_MOST_ASKED}"
        answers = {}
        for name in asked:
            (cwd / _QUESTIONS).write_text(f"#include {name}\n")
            answers[name] = "0" if run_tool([*command, _QUESTIONS], cwd).returncode else "1"
        for path, text in texts.items():
            path.write_text(
                _PROBE.sub(lambda found: answers[found[1]].ljust(len(found[0])), text), "utf-8"
            )
        return ""

    def link_library(self, link: Link, cwd: Path) -> Completed:
        """Link a shared library. What HIP's runtime provides is found when it is loaded."""
        options = ["-shared", f"-Wl,{write_version_script(link.exports, cwd)}"]
        if link.soname:
            options += [f"-Wl,-soname,{link.soname}", "-Wl,-z,nodelete"]
        if link.before:
            (cwd / "nothing.cpp").write_text("")
            named = [f"-Wl,-soname,{link.before}", "-shared", "-nodefaultlibs", "nothing.cpp"]
            done = run_tool([self._path, *named, "-o", link.before], cwd)
            if done.returncode:
                return done
            options += ["-Wl,-Bsymbolic", "-Wl,-rpath,$ORIGIN"]
            options += ["-Wl,--no-as-needed", f"./{link.before}"]
        return self._link(options, link, cwd)

    def link_program(self, link: Link, cwd: Path) -> Completed:
        """Link a program."""
        return self._link(["-pie"], link, cwd)

    def _link(self, options: Sequence[str], link: Link, cwd: Path) -> Completed:
        fixed = ["-nodefaultlibs", "-s", "-Wl,--build-id=none", "-Wl,-z,now"]
        libraries = ["-Wl,--as-needed", "-lm", "-ldl", "-lpthread", "-lc", "-lgcc"]
        command = [self._path, *options, *fixed, *link.objects, *libraries, "-o", link.output]
        return run_tool(command, cwd)
