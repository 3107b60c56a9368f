"""The constants by which AMD's library of device code is told about a processor.

An installation of ROCm has a file for each value. They are one line of LLVM's language each.
"""

from __future__ import annotations

from architectures import Architecture

CODE_OBJECT_VERSION = 600
_HEAD = 'target triple = "amdgcn-amd-amdhsa"\n'
_LINE = (
    "@__oclc_{name} = linkonce_odr protected local_unnamed_addr addrspace(4) "
    "constant {type} {value}, align {align}\n"
)


def device_constants(architecture: Architecture) -> str:
    """An LLVM module with all constants, for exact arithmetic with denormal numbers."""
    switches = {
        "finite_only_opt": 0,
        "unsafe_math_opt": 0,
        "daz_opt": 0,
        "correctly_rounded_sqrt32": 1,
        "wavefrontsize64": int(architecture.wave == 64),
    }
    lines = [
        _LINE.format(name=name, type="i8", value=value, align=1)
        for name, value in sorted(switches.items())
    ]
    numbers = {
        "ISA_version": architecture.version,
        "ABI_version": CODE_OBJECT_VERSION,
        "wavefrontsize_log2": architecture.wave.bit_length() - 1,
    }
    lines += [
        _LINE.format(name=name, type="i32", value=value, align=4)
        for name, value in sorted(numbers.items())
    ]
    return _HEAD + "".join(lines)
