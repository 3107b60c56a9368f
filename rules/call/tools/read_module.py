"""The compile gate of tasks with a call: reads the candidate module and normalises its source.

    python tools/read_module.py --source=candidate/model.py --name=ModelNew --name=Model --out=out

The module must define one of the names at its top level. Writes ``verdict.json`` and, on PASS,
``kernel.py``: the module without comments, docstrings and formatting; and ``kernel.lines.json``:
for each of its lines, the line of the source. With ``--ahead`` a module that may have Triton
kernels is also called, without data, in a sandbox of its own, and ``kernels.json`` has what was
compiled. Exits with 0 for any verdict, with 3 if the machine failed. Elsewhere the candidate is
read, never run.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernel_source import (
    MachineFault,
    Refusal,
    Source,
    check_handed_in,
    lines_of,
    normalised,
    original_lines,
    read_source,
    reading,
)
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, Verdict, canonical_json, write_verdict

MODULE = "kernel.py"
LINES = "kernel.lines.json"
BINARIES = "kernels.json"
MACHINE_FAILED = 3


def judge(source: Path, names: Sequence[str], until: str = "") -> tuple[str, Sequence[int]]:
    """The normalised text of an acceptable module, with the original lines. Raises Refusal.

    A line that begins with ``until`` ends the module, if that is not empty.
    """
    check_handed_in(source)
    module = _above(read_source(source), until) if until else read_source(source)
    defined = set(_defined(module.tree.body))
    # Names from 'import *' or globals() are known only when the module runs.
    if not defined & {*names, "*"}:
        wanted = " or ".join(f"'{name}'" for name in names)
        raise Refusal(Reason.MISSING_ENTRY, f"{source.name}: it does not define {wanted}")
    text = normalised(module)
    return text, original_lines(module, text)


def _above(source: Source, until: str) -> Source:
    """The part above the first line between statements that begins with a text."""
    lines = lines_of(source.text)
    inside: set[int] = set()
    last = 0
    for statement in source.tree.body:
        # A decorator's own place is that of its expression, which may be lines below its `@`.
        before = range(last + 1, statement.lineno) if _is_decorated(statement) else ()
        at = (line for line in before if lines[line - 1].lstrip().startswith("@"))
        last = statement.end_lineno or 0
        inside.update(range(next(at, statement.lineno) + 1, last + 1))
    found = (n for n, line in enumerate(lines, 1) if line.startswith(until) and n not in inside)
    text = "".join(lines[: next(found, len(lines) + 1) - 1])
    return Source(source.name, text, ast.parse(text, source.name))


def _is_decorated(statement: ast.stmt) -> bool:
    return bool(getattr(statement, "decorator_list", ()))


def _defined(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements bind, also in branches."""
    # Without recursion: each `elif` is one level deeper.
    pending = [*body]
    while pending:
        statement = pending.pop()
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in aliases)
            case ast.Assign() | ast.AnnAssign():
                yield from _bound(statement)
            case ast.If() | ast.Try() | ast.With() | ast.For():
                blocks = ("body", "orelse", "finalbody")
                for block in blocks:
                    pending += getattr(statement, block, [])
                for handler in getattr(statement, "handlers", []):
                    pending += handler.body


def _bound(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def compile_kernels(text: str, spec: Path, out: Path) -> str:
    """Write ``kernels.json``; returns words for the summary, if the module may have kernels.

    The module runs without a GPU, so a failure says nothing about it: what was not compiled, its
    runners compile. Raises MachineFault.
    """
    made: dict[str, object] = {"files": {}, "launchers": ()}
    said = ""
    if "triton" in text:
        from ahead import compile_ahead  # its sandbox is there only where it is asked for

        compiled = compile_ahead(text, spec)
        made = {"files": compiled.binaries, "launchers": compiled.launchers}
        said = f", {compiled.told}"
    (out / BINARIES).write_bytes(canonical_json(made))
    return said


def told(refusal: Refusal | None, summary: str) -> Verdict:
    """The gate's verdict."""
    if refusal:
        return Verdict("compile", FAIL, refusal.reason.value, refusal.summary, refusal.detail)
    return Verdict("compile", PASS, summary=summary)


def failed(fault: MachineFault) -> int:
    """Tell of a machine that judged nothing; returns the exit status."""
    print(f"compile: {fault}", file=sys.stderr)
    return MACHINE_FAILED


def main(arguments: Sequence[str]) -> int:
    """Run the gate; returns the exit status."""
    parser = argparse.ArgumentParser(description="compile gate of tasks with a call")
    parser.add_argument("--source", type=Path, required=True, help="the candidate module")
    parser.add_argument("--name", action="append", required=True, help="a name that it may define")
    parser.add_argument("--until", default="", help="the start of the line that ends the module")
    parser.add_argument("--ahead", type=Path, help="the GPU, the call and its configs, JSON")
    parser.add_argument("--out", type=Path, required=True, help="an existing folder")
    options = parser.parse_args(arguments)
    try:
        with reading(options.source.name):
            text, lines = judge(options.source, options.name, options.until)
    except Refusal as refusal:
        write_verdict(told(refusal, ""), options.out)
        return 0
    except MachineFault as fault:
        return failed(fault)
    (options.out / MODULE).write_text(text, encoding="utf-8")
    (options.out / LINES).write_text(json.dumps(lines), encoding="utf-8")
    summary = f"{options.source.name}: {len(text.splitlines())} lines"
    if options.ahead:
        try:
            summary += compile_kernels(text, options.ahead, options.out)
        except MachineFault as fault:
            return failed(fault)
    write_verdict(told(None, summary), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
