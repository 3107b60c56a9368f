"""The compile gate of Triton tasks: checks the candidate module and normalises its source.

    python tools/compile.py --source=candidate/softmax.py --entry=softmax \
        --signature=signature.json --out=out [--ahead=ahead.json]

Writes ``verdict.json`` and, on PASS, ``kernel.py``: the module without comments, docstrings and
formatting, so that an edit of these changes nothing further on; and ``kernel.lines.json``: for
each of its lines, the line of the source. Exits 0 whatever the verdict, 2 for
a wrong command line, 3 where this machine could not compile anything. The candidate is read, never
run, by this process. With ``--ahead`` its kernels are compiled for a GPU that need not be there, in
a sandbox, where it is run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import kernel_entry
import kernel_imports
import kernel_language
from kernel_source import (
    MachineFault,
    Refusal,
    check_handed_in,
    normalised,
    original_lines,
    read_source,
)
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, Verdict, write_verdict

MODULE = "kernel.py"
LINES = "kernel.lines.json"
MACHINE_FAILED = 3


def judge(source: Path, entry: str, signature: dict[str, Any]) -> tuple[str, Sequence[int]]:
    """The normalised text of a valid module, and the source line of each line. Raises Refusal."""
    check_handed_in(source)
    module = read_source(source)
    function = kernel_entry.find_entry(module, entry, signature)
    kernel_imports.check_imports(module)
    kernel_language.check_kernels(module, function)
    text = normalised(module)
    return text, original_lines(module, text)


def compile_kernels(source: Path, spec: Path) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Compile what the module launches: a line about it, and the kernels. Raises Refusal."""
    from ahead import compile_ahead  # its sandbox is there only where it is asked for

    compiled = compile_ahead(source, spec)
    if compiled.error:
        raise Refusal("COMPILE_ERROR", compiled.error, compiled.detail)
    said = f"{len(compiled.kernels)} kernels compiled"
    if compiled.left_out:
        said += f"; not all: {compiled.left_out}"
    return said, compiled.kernels


def write(
    out: Path, refusal: Refusal | None, summary: str, **more: Sequence[Mapping[str, Any]]
) -> None:
    """Write the gate's verdict."""
    if refusal:
        verdict = Verdict(
            "compile", FAIL, Reason(refusal.reason).value, refusal.summary, refusal.detail
        )
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
        text, lines = judge(options.source, options.entry, signature)
        summary = f"{options.source.name}: {len(text.splitlines())} lines"
        if options.ahead:
            said, more["kernels"] = compile_kernels(options.source, options.ahead)
            summary += f", {said}"
    except Refusal as refusal:
        write(options.out, refusal, "")
        return 0
    except MachineFault as fault:
        print(f"compile: {fault}", file=sys.stderr)
        return MACHINE_FAILED
    (options.out / MODULE).write_text(text, encoding="utf-8")
    (options.out / LINES).write_text(json.dumps(lines), encoding="utf-8")
    write(options.out, None, summary, **more)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
