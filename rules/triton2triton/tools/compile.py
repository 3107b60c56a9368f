"""The compile gate of Triton tasks: checks the candidate module and normalises its source.

    python tools/compile.py --source=candidate/softmax.py --entry=softmax \
        --signature=signature.json --out=out [--ahead=ahead.json]

Writes ``verdict.json`` and, on PASS, ``kernel.py``: the module without comments, docstrings and
formatting, so that an edit of these changes nothing further on; and ``kernel.lines.json``: for
each of its lines, the line of the source. Exits 0 whatever the verdict, 2 for
a wrong command line, 3 where this machine could not compile anything. The candidate is read, never
run, by this process. With ``--ahead`` its kernels are compiled for a GPU that need not be there, in
a sandbox, where it is run; ``kernels.json`` then has them for its runners: the files of Triton's
cache by their paths there, in base64. It is empty where not all could be compiled.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kernel_entry
import kernel_imports
import kernel_language
from kernel_source import (
    MachineFault,
    Refusal,
    Source,
    check_handed_in,
    normalised,
    original_lines,
    read_source,
    reading,
)
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, Verdict, canonical_json, write_verdict

if TYPE_CHECKING:
    from ahead import Compiled

MODULE = "kernel.py"
LINES = "kernel.lines.json"
BINARIES = "kernels.json"
MACHINE_FAILED = 3


def judge(path: Path, entry: str, signature: dict[str, Any]) -> tuple[Source, str, Sequence[int]]:
    """A valid module, its normalised text, and the source line of each line of that.

    Raises Refusal.
    """
    check_handed_in(path)
    module = read_source(path)
    function = kernel_entry.find_entry(module, entry, signature)
    kernel_imports.check_imports(module)
    kernel_language.check_kernels(module, function)
    text = normalised(module)
    return module, text, original_lines(module, text)


def compile_kernels(module: Source, text: str, lines: Sequence[int], spec: Path) -> Compiled:
    """Compile what the module launches. Raises Refusal where some of it does not compile."""
    from ahead import compile_ahead  # its sandbox is there only where it is asked for

    compiled = compile_ahead(text, spec)
    if compiled.error:
        line = lines[compiled.line - 1] if 0 < compiled.line <= len(lines) else 1
        raise module.refuse(ast.Pass(lineno=line), Reason.COMPILE_ERROR, compiled.error)
    return compiled


def write(
    out: Path, refusal: Refusal | None, summary: str, **more: Sequence[Mapping[str, Any]]
) -> None:
    """Write the gate's verdict."""
    if refusal:
        verdict = Verdict("compile", FAIL, refusal.reason.value, refusal.summary, refusal.detail)
    else:
        verdict = Verdict("compile", PASS, "", summary, extra=more)
    write_verdict(verdict, out)


def main(arguments: Sequence[str]) -> int:
    """Run the gate; give the exit status."""
    parser = argparse.ArgumentParser(description="compile gate of Triton tasks")
    parser.add_argument("--source", type=Path, required=True, help="the candidate module")
    parser.add_argument("--entry", required=True, help="the function that is called")
    parser.add_argument("--signature", type=Path, required=True, help="the task's signature, JSON")
    parser.add_argument("--ahead", type=Path, help="the GPU and the task's configs, JSON")
    parser.add_argument("--out", type=Path, required=True, help="an existing folder")
    options = parser.parse_args(arguments)
    signature = json.loads(options.signature.read_text(encoding="utf-8"))
    more = {}
    try:
        with reading(options.source.name):
            module, text, lines = judge(options.source, options.entry, signature)
        summary = f"{options.source.name}: {len(text.splitlines())} lines"
        if options.ahead:
            compiled = compile_kernels(module, text, lines, options.ahead)
            more["kernels"] = compiled.kernels
            summary += f", {compiled.told}"
    except Refusal as refusal:
        write(options.out, refusal, "")
        return 0
    except MachineFault as fault:
        print(f"compile: {fault}", file=sys.stderr)
        return MACHINE_FAILED
    (options.out / MODULE).write_text(text, encoding="utf-8")
    (options.out / LINES).write_text(json.dumps(lines), encoding="utf-8")
    if options.ahead:
        made = {"files": compiled.binaries, "launchers": compiled.launchers}
        (options.out / BINARIES).write_bytes(canonical_json(made))
    write(options.out, None, summary, **more)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
