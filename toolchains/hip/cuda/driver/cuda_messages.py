"""Maps messages of NVIDIA's tools to the source as its author wrote it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cuda_resources import KernelResources
from diagnostics import translate
from faults import Position, SourceFault, ToolchainFault, describe
from sources import MAIN, Sources

MOST_STATIC_SHARED = 48 << 10
"""Bytes; dynamic shared memory is asked for at a launch, and may be more."""
_PLACED = re.compile(
    r"(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): "
    r"(?P<kind>catastrophic error|error|warning|remark)(?: #[\w-]+)?: (?P<text>.*)"
)
_CARET = re.compile(r"\s*\^")
_UNRESOLVED = re.compile(r"Unresolved extern (?:function|variable) '([^']+)'")
_OF_KERNEL = re.compile(r"[Ee]ntry function '(\w+)'(.*)")
_CITED = re.compile(r"'([^']+)'")
_MOST_TOLD, _MOST_CITED = 50, 5
"""Faults that are told, and names in one by which it is placed: a source can make any number."""
_FATAL = re.compile(r"ptxas (?:fatal|error)\s*: (.*)|.*; (?:fatal|error)\s*: (.*)")
_BLAMES_NO_SOURCE = ("memory allocation", "out of memory", "Could not open", "No space left")


def compiler_fault(messages: str, sources: Sources, prefixes: Sequence[str]) -> Exception:
    """The fault that a preprocessor or a front end reports."""
    text = _rewritten(messages)
    if "error: " not in text:
        return ToolchainFault(f"the compiler fails:\n{messages}")
    return SourceFault(translate(text, sources, prefixes))


def device_fault(messages: str, sources: Sources) -> Exception:
    """The fault that the assembler reports: it knows kernels by their names only."""
    if any(sign in messages for sign in _BLAMES_NO_SOURCE):
        return ToolchainFault(f"cannot assemble the device's code:\n{messages}")
    found: list[str] = []
    for line in messages.split("\n"):
        if len(found) == _MOST_TOLD:
            break
        match = _FATAL.match(line)
        text = (match.group(1) or match.group(2)) if match else ""
        if not text or text.startswith("Ptx assembly aborted"):
            continue
        unresolved = _UNRESOLVED.search(text)
        kernel = _OF_KERNEL.search(text)
        if unresolved:
            name = _plain(unresolved.group(1))
            text = f"undefined symbol '{name}' in device code"
            found.append(_about((name,), text, sources))
        elif kernel:
            found.append(_about_kernel(kernel.group(1), kernel.group(2), sources))
        else:
            # Of inline assembly, which the assembler cites.
            cited = _CITED.findall(text)[:_MOST_CITED]
            found.append(_about((*cited, "asm", "__asm__"), text, sources))
    if not found:
        return ToolchainFault(f"cannot assemble the device's code:\n{messages}")
    return SourceFault("\n".join(dict.fromkeys(found)))


def shared_fault(kernels: Sequence[KernelResources], sources: Sources) -> SourceFault | None:
    """The fault in kernels with more static shared memory than any launch gives.

    The assembler refuses them, too, but not with a processor's own features.
    """
    found = []
    large = [kernel for kernel in kernels if kernel.shared_bytes > MOST_STATIC_SHARED]
    for kernel in large[:_MOST_TOLD]:
        sizes = f"{kernel.shared_bytes:#x} bytes, {MOST_STATIC_SHARED:#x} max"
        text = f" uses too much shared data ({sizes})"
        found.append(_about_kernel(kernel.name, text, sources))
    return SourceFault("\n".join(found)) if found else None


def _about_kernel(mangled: str, text: str, sources: Sources) -> str:
    name = _plain(mangled)
    return _about((name,), f"kernel '{name}'{text}", sources)


def _rewritten(messages: str) -> str:
    """``file(line): error: text``, a line of source and a caret, as ``file:line:column: …``."""
    lines = messages.splitlines()
    out: list[str] = []
    for number, line in enumerate(lines):
        match = _PLACED.match(line)
        if match is None:
            out.append(line)
            continue
        kind = "error" if match["kind"].endswith("error") else "warning"
        # The source is shown indented by two columns.
        caret = next((c for c in lines[number + 1 : number + 8] if _CARET.fullmatch(c)), None)
        column = max(len(caret) - 2, 1) if caret else 1
        out.append(f"{match['file']}:{match['line']}:{column}: {kind}: {match['text']}")
    return "\n".join(out)


def _about(names: Sequence[str], message: str, sources: Sources) -> str:
    """The message at the first mention, in the source, of the first name that is mentioned."""
    for name in names:
        pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        for laid in sources.files.values():
            for number, line in enumerate(laid.text.splitlines(), start=1):
                found = pattern.search(line)
                if found:
                    return describe(laid.original(number, found.start() + 1), "error", message)
    return describe(Position(sources.files[MAIN].path, 1, 1), "error", message)


def _plain(symbol: str) -> str:
    """The last identifier of a mangled name: each follows its length."""
    if not symbol.startswith("_Z"):
        return symbol
    name, at = symbol, 2
    while found := re.compile(r"[A-Z]*(\d{1,9})").match(symbol, at):
        at = found.end() + int(found.group(1))
        name = symbol[found.end() : at]
    return name
