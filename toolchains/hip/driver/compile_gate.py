"""The compile gate of HIP kernels, for any platform: a kernel, a wrong source, or failed tools.

    python compile_gate.py cuda --compiler=nvcc:DIR --host=zig:DIR --headers=DIR \
        --arch=sm_90 --source=candidate/softmax.hip --entry=softmax_f32 --entry=softmax_f16

Writes ``out/verdict.json``, for GPUs with what each kernel takes of the processor, and, on PASS,
``out/kernel.so``. With ``--sanitize`` that is what can be watched as it runs, and
``out/kernel.places.json`` says where its lines are. Exits 0 for any verdict, 3 when the tool chain
failed, which says nothing about the kernel. Standard library only; the kernel is compiled, never
run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

sys.path += [str(Path(__file__).resolve().parents[1] / part) for part in ("common", "host")]
sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

from faults import SourceFault, ToolchainFault, shortened
from hip_platforms import HipPlatform, Request, Resources, find_platforms
from terms.reading import can_blame_source, own_time, told
from terms.reasons import Reason
from terms.verdict import FAIL, PASS, Verdict, write_verdict

OUT = Path("out")
LIBRARY = OUT / "kernel.so"
PLACES = OUT / "kernel.places.json"
TOOLCHAIN_FAILED = 3
_MOST_REFUSAL = 500
_MOST_SUMMARY = 2000

Build = Callable[[Path], "Compiled"]
"""Compiles a source. Raises SourceFault and ToolchainFault."""


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a correct source.

    Attributes:
        summary: one line for people.
        more: further fields of the verdict, such as what each kernel takes of the processor.
    """

    summary: str
    more: Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Compile one kernel and write the verdict."""
    platforms = find_platforms()
    options = _parser(platforms).parse_args(arguments)
    platform = platforms[options.platform]
    # Those are read beside the verdict, whatever it is.
    made = (LIBRARY, PLACES) if _watched(platform, options) else ()
    return judge(
        options.source, lambda source: _build(platform, options, source), made, options.entry
    )


def judge(
    source: Path, build: Build, made: Sequence[Path] = (), entries: Sequence[str] = ()
) -> int:
    """Build, and write ``out/verdict.json``: the exit code of the gate.

    0 for any verdict; 3 when the tools failed, which says nothing about the source. What stands in
    place of a file that an agent's session refused is not built. ``made`` are files of ``out/``
    that are there whatever the verdict, if need be empty: an action has all its outputs.
    ``entries`` are the functions that every source has to have.
    """
    code = _judged(source, build, entries)
    if code == 0:
        for file in made:
            file.touch()
    return code


def leave(code: int) -> NoReturn:
    """End this process with ``code``, though a thread of a build that took too long may go on."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _judged(source: Path, build: Build, entries: Sequence[str]) -> int:
    try:
        if refusal := refusal_in(source):
            print(refusal, file=sys.stderr)
            return _write(FAIL, Reason.NOT_HANDED_IN, refusal)
        compiled = _built(source, build, entries)
    except SourceFault as fault:
        reason, summary, text = _explain(str(fault), source)
        print(text, file=sys.stderr)
        return _write(FAIL, reason, summary, text)
    except (ToolchainFault, OSError) as fault:
        print(f"compile: {shortened(str(fault))}", file=sys.stderr)
        return TOOLCHAIN_FAILED
    return _write(PASS, None, compiled.summary, more=compiled.more)


def _built(source: Path, build: Build, entries: Sequence[str]) -> Compiled:
    """Build; what breaks in that is the source's fault, too, unless a trivial one breaks it."""
    try:
        with own_time():
            return build(source)
    except Exception as error:
        if not can_blame_source(error):
            raise
        if broken := _breaks_anyway(source.name, build, entries):
            raise ToolchainFault(f"no source can be compiled: {broken!r}") from error
        raise SourceFault(f"{source.name}:1:1: error: {told(error)}") from None


def _breaks_anyway(name: str, build: Build, entries: Sequence[str]) -> Exception | None:
    """What goes wrong with a trivial source, too, so that it says nothing about any other."""
    try:
        with tempfile.TemporaryDirectory() as folder, own_time():
            trivial = Path(folder, name)
            trivial.write_text("".join(f'extern "C" void {entry}() {{}}\n' for entry in entries))
            build(trivial)
    except SourceFault:
        return None  # it was read
    except Exception as fault:  # noqa: BLE001 - whatever it is
        return fault
    finally:
        for file in (LIBRARY, PLACES):
            file.unlink(missing_ok=True)
    return None


def _write(
    outcome: str,
    reason: Reason | None,
    summary: str,
    detail: str = "",
    more: Mapping[str, Any] | None = None,
) -> int:
    why = reason.value if reason else ""
    write_verdict(Verdict("compile", outcome, why, summary, detail, extra=more or {}), OUT)
    return 0


def refusal_in(source: Path) -> str:
    """Why the session refused an agent's file; empty where ``source`` is a separate file.

    The session leaves one line in its place: ``hand_in.py`` of the rule ``agent``.
    """
    head = f"// {source.name} was not handed in: ".encode()
    with source.open("rb") as file:
        text = file.read(_MOST_REFUSAL)
    if not text.startswith(head) or text.find(b"\n") != len(text) - 1:
        return ""
    why = text[len(head) :].decode(errors="replace").strip()
    return f"the agent's {source.name} was refused: {why}"


def _build(platform: HipPlatform, options: argparse.Namespace, source: Path) -> Compiled:
    OUT.mkdir(exist_ok=True)
    kernels = platform.build_kernel(
        Request(
            source,
            LIBRARY,
            options.compiler,
            (),
            options.entry,
            PLACES if _watched(platform, options) else None,
            options,
        )
    )
    if not platform.spilled:
        return Compiled(f"{LIBRARY.stat().st_size} bytes", {})
    return _with_resources(options.arch, kernels, platform.spilled)


def _watched(platform: HipPlatform, options: argparse.Namespace) -> bool:
    return bool(platform.watched) and options.sanitize


def _with_resources(arch: str, kernels: Sequence[Resources], spilled: str) -> Compiled:
    """Kernels for a GPU; ``spilled`` is the unit in which they count what they spill."""
    told = {"kernels": [kernel.to_json() for kernel in kernels]}
    if not kernels:
        return Compiled(f"{arch}: no kernels", told)
    scarce = min(kernels, key=lambda kernel: (kernel.occupancy, -kernel.registers))
    spills = sum(kernel.spills for kernel in kernels)
    parts = [
        f"{arch}: {len(kernels)} kernel{'s' if len(kernels) > 1 else ''}",
        f"at most {max(kernel.registers for kernel in kernels)} registers",
        f"{max(kernel.shared_bytes for kernel in kernels)} bytes shared",
        f"{spills} {spilled}" if spills else "no spills",
        f"occupancy {scarce.occupancy} of {scarce.occupancy_most}",
    ]
    return Compiled(", ".join(parts), told)


def _explain(text: str, source: Path) -> tuple[Reason, str, str]:
    """Reason, summary and detail of the driver's messages, in terms of the author's file."""
    text = shortened(text.replace(str(source), source.name))
    reason = Reason.COMPILE_ERROR
    if ": unsupported:" in text:
        reason = Reason.UNSUPPORTED_FEATURE
    elif 'no function extern "C"' in text:
        reason = Reason.MISSING_ENTRY
    lines = text.splitlines()
    summary = next((line for line in lines if "error:" in line or "unsupported:" in line), text)
    return reason, shortened(summary.strip(), _MOST_SUMMARY), text


def _parser(platforms: Mapping[str, HipPlatform]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile gate of HIP kernels")
    chosen = parser.add_subparsers(dest="platform", required=True)
    for name, platform in platforms.items():
        gate = chosen.add_parser(name, help=platform.doc)
        gate.add_argument("--source", type=Path, required=True)
        platform.add_options(gate)
    return parser


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
