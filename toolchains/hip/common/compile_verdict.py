"""The verdict of a compile gate: a kernel, a wrong source, or tools that failed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from faults import SourceFault, ToolchainFault

OUT = Path("out")
LIBRARY = OUT / "kernel.so"
PLACES = OUT / "kernel.places.json"
TOOLCHAIN_FAILED = 3
_MOST_REFUSAL = 500


@dataclass(frozen=True)
class Compiled:
    """What came of a source that is right.

    Attributes:
        summary: one line for people.
        more: further fields of the verdict, such as what each kernel takes of the processor.
    """

    summary: str
    more: Mapping[str, Any]


class Resources(Protocol):
    """What a kernel takes of its processor, as far as every GPU has it."""

    @property
    def registers(self) -> int:
        """Of one thread."""

    @property
    def shared_bytes(self) -> int:
        """Of one block."""

    @property
    def spills(self) -> int:
        """What does not fit into registers."""

    @property
    def occupancy(self) -> int:
        """Waves that a multiprocessor can hold at once."""

    @property
    def occupancy_most(self) -> int:
        """The most that it could hold of any kernel."""

    def to_json(self) -> dict[str, Any]:
        """As a part of ``verdict.json``."""


def judge(source: Path, build: Callable[[], Compiled], made: Sequence[Path] = ()) -> int:
    """Build, and write ``out/verdict.json``: the exit code of the gate.

    0 for any verdict; 3 when the tools failed, which says nothing about the source. What stands in
    place of a file that an agent's session refused is not built. ``made`` are files of ``out/``
    that are there whatever the verdict, if need be empty: an action has all its outputs.
    """
    code = _judged(source, build)
    if code == 0:
        for file in made:
            file.touch()
    return code


def _judged(source: Path, build: Callable[[], Compiled]) -> int:
    try:
        if refusal := refusal_in(source):
            print(refusal, file=sys.stderr)
            _write("FAIL", "NOT_HANDED_IN", refusal, "", {})
            return 0
        compiled = build()
    except SourceFault as fault:
        reason, summary, text = _explain(str(fault), source)
        print(text, file=sys.stderr)
        _write("FAIL", reason, summary, text, {})
        return 0
    except (ToolchainFault, OSError) as fault:
        print(f"compile: {fault}", file=sys.stderr)
        return TOOLCHAIN_FAILED
    _write("PASS", "", compiled.summary, "", compiled.more)
    return 0


def refusal_in(source: Path) -> str:
    """Why the session refused an agent's file; empty where ``source`` is a file of its own.

    The session leaves one line in its place: ``hand_in.py`` of the rule ``agent``.
    """
    head = f"// {source.name} was not handed in: ".encode()
    with source.open("rb") as file:
        text = file.read(_MOST_REFUSAL)
    if not text.startswith(head) or text.find(b"\n") != len(text) - 1:
        return ""
    why = text[len(head) :].decode(errors="replace").strip()
    return f"the agent's {source.name} was refused: {why}"


def with_resources(arch: str, kernels: Sequence[Resources], spilled: str) -> Compiled:
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


def _write(verdict: str, reason: str, summary: str, detail: str, more: Mapping[str, Any]) -> None:
    document = {
        "schema": 1,
        "gate": "compile",
        "verdict": verdict,
        "reason": reason,
        "summary": summary,
        "detail": detail,
        "cases": [],
        **more,
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    OUT.mkdir(exist_ok=True)
    (OUT / "verdict.json").write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")
