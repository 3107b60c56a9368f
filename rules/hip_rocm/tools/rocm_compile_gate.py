"""The compile gate of HIP kernels for AMD's processors.

    python tools/rocm_compile_gate.py --compiler=zig:DIR --libraries=DIR --arch=gfx942 \
        --source=candidate/softmax.hip --entry=softmax_f32 --entry=softmax_f16

Writes ``out/verdict.json`` with what each kernel takes of the processor and, on PASS,
``out/kernel.so``: the host's functions with the code of the kernels in it. Exits 0 for any
verdict, 3 when the tool chain failed, which says nothing about the kernel. Standard library only;
the kernel is compiled, never run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "hip" / "common"))
sys.path.append(str(Path(__file__).parents[1] / "hip" / "cpu" / "driver"))
sys.path.append(str(Path(__file__).parents[1] / "hip" / "rocm" / "driver"))

from architectures import ARCHITECTURES, Architecture
from code_object import KernelResources
from faults import SourceFault, ToolchainFault
from rocm_builds import build_rocm_kernel
from rocm_compilers import find_rocm_compiler

OUT = Path("out")
LIBRARY = OUT / "kernel.so"
TOOLCHAIN_FAILED = 3


def main(arguments: Sequence[str]) -> int:
    """Compile one kernel and write the verdict."""
    options = _parser().parse_args(arguments)
    try:
        kernels = build_rocm_kernel(
            options.source,
            LIBRARY,
            find_rocm_compiler(options.compiler, options.libraries),
            _architecture(options.arch),
            entries=options.entry,
        )
    except SourceFault as fault:
        reason, summary, text = _explain(str(fault), options.source)
        print(text, file=sys.stderr)
        _write_verdict("FAIL", reason, summary, text, [])
        return 0
    except (ToolchainFault, OSError) as fault:
        print(f"compile: {fault}", file=sys.stderr)
        return TOOLCHAIN_FAILED
    summary = _summary(options.arch, kernels)
    _write_verdict("PASS", "", summary, "", [kernel.to_json() for kernel in kernels])
    return 0


def _architecture(name: str) -> Architecture:
    if name not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise ToolchainFault(f"no architecture '{name}'; there are: {known}")
    return ARCHITECTURES[name]


def _summary(arch: str, kernels: Sequence[KernelResources]) -> str:
    """One line: the most that a kernel takes of what there is little of."""
    if not kernels:
        return f"{arch}: no kernels"
    scarce = min(kernels, key=lambda kernel: (kernel.occupancy, -kernel.registers))
    spills = sum(kernel.spills for kernel in kernels)
    parts = [
        f"{arch}: {len(kernels)} kernels",
        f"at most {max(kernel.registers for kernel in kernels)} registers",
        f"{max(kernel.shared_bytes for kernel in kernels)} bytes shared",
        f"{spills} spills" if spills else "no spills",
        f"occupancy {scarce.occupancy} of {scarce.occupancy_most}",
    ]
    return ", ".join(parts)


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


def _write_verdict(
    verdict: str, reason: str, summary: str, detail: str, kernels: list[dict[str, Any]]
) -> None:
    document = {
        "schema": 1,
        "gate": "compile",
        "verdict": verdict,
        "reason": reason,
        "summary": summary,
        "detail": detail,
        "cases": [],
        "kernels": kernels,
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    OUT.mkdir(exist_ok=True)
    (OUT / "verdict.json").write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile gate of HIP kernels for AMD")
    parser.add_argument("--compiler", required=True, metavar="zig:DIR|rocm:DIR")
    parser.add_argument("--libraries", type=Path, metavar="DIR")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--entry", action="append", default=[], metavar="NAME")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
