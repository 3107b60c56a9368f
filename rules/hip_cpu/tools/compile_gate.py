"""The compile gate of HIP kernels on the CPU.

    python tools/compile_gate.py --compiler=zig:DIR --wave=64 --source=candidate/softmax.hip \
        --entry=softmax_f32 --entry=softmax_f16

Writes ``out/verdict.json`` and, on PASS, ``out/kernel.so``; with ``--sanitize`` an instrumented
one, and ``out/kernel.places.json``. Exits 0 for any verdict, 3 when the
tool chain failed, which says nothing about the kernel. Standard library only; the kernel is
compiled, never run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "hip" / "common"))
sys.path.insert(0, str(Path(__file__).parents[1] / "hip" / "cpu" / "driver"))

from builds import build_kernel
from compilers import find_compiler
from faults import SourceFault, ToolchainFault
from sanitized import build_sanitized

OUT = Path("out")
LIBRARY = OUT / "kernel.so"
PLACES = OUT / "kernel.places.json"
TOOLCHAIN_FAILED = 3


def main(arguments: Sequence[str]) -> int:
    """Compile one kernel and write the verdict."""
    options = _parser().parse_args(arguments)
    try:
        _build(options)
    except SourceFault as fault:
        reason, summary, text = _explain(str(fault), options.source)
        print(text, file=sys.stderr)
        _write_verdict("FAIL", reason, summary, text)
        if options.sanitize:  # no gate of its own: whoever reads what it makes finds the verdict
            LIBRARY.touch()
            PLACES.touch()
        return 0
    except (ToolchainFault, OSError) as fault:
        print(f"compile: {fault}", file=sys.stderr)
        return TOOLCHAIN_FAILED
    _write_verdict("PASS", "", f"{LIBRARY.stat().st_size} bytes", "")
    return 0


def _build(options: argparse.Namespace) -> None:
    compiler = find_compiler(options.compiler)
    if options.sanitize:
        OUT.mkdir(exist_ok=True)
        build_sanitized(options.source, LIBRARY, PLACES, compiler, wave_size=options.wave)
    else:
        build_kernel(
            options.source,
            LIBRARY,
            compiler,
            wave_size=options.wave,
            include=[],
            entries=options.entry,
        )


def _explain(text: str, source: Path) -> tuple[str, str, str]:
    """Reason, summary and detail of what the driver says, in terms of the author's file."""
    text = text.replace(str(source), source.name)
    reason = "COMPILE_ERROR"
    if ": unsupported:" in text:
        reason = "UNSUPPORTED_FEATURE"
    elif 'no function extern "C"' in text:
        reason = "MISSING_ENTRY"
    lines = text.splitlines()
    summary = next((line for line in lines if "error:" in line or "unsupported:" in line), text)
    return reason, summary.strip(), text


def _write_verdict(verdict: str, reason: str, summary: str, detail: str) -> None:
    document = {
        "schema": 1,
        "gate": "compile",
        "verdict": verdict,
        "reason": reason,
        "summary": summary,
        "detail": detail,
        "cases": [],
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    OUT.mkdir(exist_ok=True)
    (OUT / "verdict.json").write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile gate of HIP kernels on the CPU")
    parser.add_argument("--compiler", required=True, metavar="zig:DIR|cxx:PATH")
    parser.add_argument("--wave", type=int, choices=(32, 64), required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--entry", action="append", default=[], metavar="NAME")
    parser.add_argument(
        "--sanitize", action="store_true", help="instrument it; writes out/kernel.places.json too"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
