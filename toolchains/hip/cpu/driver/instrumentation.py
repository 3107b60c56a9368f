"""Makes clang report a kernel's accesses to memory, without clang's own run-time libraries.

Its thread sanitizer knows accesses best: volatile and atomic ones are told apart, those to locals
are left out. But only its address sanitizer puts gaps between variables, and no compilation can
have both. So a source becomes intermediate code. That goes through the address sanitizer, which
leaves accesses alone, and the result goes through the thread sanitizer.
"""

from __future__ import annotations

import re

from layout import Laid

_COMMON = (
    "-O1",
    "-gline-tables-only",
    "-fno-omit-frame-pointer",
    # The address to return to shows where in the source a call stands.
    "-fno-optimize-sibling-calls",
)

CHECKS = (
    *_COMMON,
    "-fsanitize=address,array-bounds",
    "-fsanitize-recover=array-bounds",
    # A trailing array of a structure has the size that is written there.
    "-fstrict-flex-arrays=3",
    "-Xclang",
    "-disable-llvm-passes",
    "-S",
    "-emit-llvm",
)
"""C++ to intermediate code that checks indices and is not optimised yet."""

GAPS = (
    *_COMMON,
    "-w",
    "-fsanitize=address",
    *(
        part
        for option in (
            "-asan-stack=0",
            "-asan-instrument-reads=0",
            "-asan-instrument-writes=0",
            "-asan-instrument-atomics=0",
            "-asan-instrument-byval=0",
            "-asan-initialization-order=0",
            # Variables that are aligned to more than a gap get none: gaps of 128 bytes.
            "-asan-mapping-scale=7",
        )
        for part in ("-mllvm", option)
    ),
    "-S",
    "-emit-llvm",
)
"""Intermediate code to optimised code with gaps between variables."""

ACCESSES = (
    "-O1",
    "-w",
    "-fPIC",
    "-fno-ident",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fsanitize=thread",
    *(
        part
        for option in (
            "-tsan-distinguish-volatile=1",
            "-tsan-instrument-func-entry-exit=0",
            "-tsan-handle-cxx-exceptions=0",
            # A value that is read and then overwritten may not have been written before.
            "-tsan-instrument-read-before-write=1",
        )
        for part in ("-mllvm", option)
    ),
    "-c",
)
"""Intermediate code to an object, with a call before each access."""

SHARED_SECTION = """\
SECTIONS {
  .hipcpu_shared : {
    hipcpu_shared_begin = .;
    . += 128;
    *(.hipcpu_shared .hipcpu_shared.*)
    hipcpu_shared_end = .;
  }
}
INSERT AFTER .data;
"""
"""The linker's script: where the __shared__ variables begin, with a gap, and end."""

_BITS = (8, 16, 32, 64)
_BYTES = (1, 2, 4, 8, 16)
_ACCESSES = [
    f"{kind}{access}{size}"
    for kind in ("", "unaligned_", "volatile_", "unaligned_volatile_")
    for access in ("read", "write")
    for size in _BYTES
]
_UPDATES = ("add", "sub", "and", "or", "xor", "nand")
_ATOMICS = [
    f"atomic{bits}_{operation}"
    for bits in _BITS
    for operation in (
        "load",
        "store",
        "exchange",
        "compare_exchange_val",
        *(f"fetch_{update}" for update in _UPDATES),
    )
]
_OTHERS = (
    "init",
    "memcpy",
    "memmove",
    "memset",
    "vptr_read",
    "vptr_update",
    "atomic_thread_fence",
    "atomic_signal_fence",
)
CALLS = frozenset(
    (
        "__asan_handle_no_return",
        "__asan_init",
        "__asan_memcpy",
        "__asan_memmove",
        "__asan_memset",
        "__asan_version_mismatch_check_v8",
        "__asan_register_elf_globals",
        "__asan_unregister_elf_globals",
        "__ubsan_handle_out_of_bounds",
        "hipcpu_sanitizer_barrier",
        "hipcpu_sanitizer_kernel",
        "hipcpu_sanitizer_module",
        *(f"__tsan_{name}" for name in (*_ACCESSES, *_ATOMICS, *_OTHERS)),
    )
)
"""What instrumented code calls; the sanitizing runtime has it."""
LINKER = frozenset(
    (
        "__ehdr_start",
        "_end",
        "__start_asan_globals",
        "__stop_asan_globals",
        "hipcpu_shared_begin",
        "hipcpu_shared_end",
    )
)
"""What the linker defines in the library itself."""
BUFFERS = "hipcpu_sanitizer_buffer"
"""How a program tells the sanitizing runtime of memory that it passes to kernels."""

_ATTRIBUTES = re.compile(r"^attributes #\d+ = .*$", re.MULTILINE)
_MERGED = re.compile(r"^(@[^=]+ = )linkonce_odr (?:hidden )?(.*)$", re.MULTILINE)
_COMDAT = re.compile(r", comdat(?:\(\$[^)]*\))?")
_ANGLED = re.compile(r"#\s*include\s*<")
_LIBRARY_BEGINS = (
    "#pragma clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))"
)
_LIBRARY_ENDS = "#pragma clang attribute pop"


def keep_variables(code: str) -> str:
    """Intermediate code whose variables no linker may merge with those of another file.

    Only such variables get gaps. A library is made of one file, so those of templates and inline
    functions get them, too.
    """
    return _MERGED.sub(lambda line: f"{line[1]}internal {_COMDAT.sub('', line[2])}", code)


def pass_on(code: str) -> str:
    """Intermediate code from the one sanitizer, for the other."""
    return _ATTRIBUTES.sub(
        lambda line: line.group().replace(" sanitize_address", " sanitize_thread"), code
    )


def hide_libraries(laid: Laid) -> Laid:
    """Give the functions of system headers no lines.

    What they do then counts as done in the line that calls them, which is the author's.
    """
    lines: list[str] = []
    origins: list[tuple[tuple[int, int, int], ...]] = []
    for line, tokens in zip(laid.text.split("\n"), laid.origins, strict=False):
        angled = _ANGLED.match(line) is not None
        lines += [_LIBRARY_BEGINS, line, _LIBRARY_ENDS] if angled else [line]
        origins += [(), tokens, ()] if angled else [tokens]
    return Laid(laid.path, "".join(f"{line}\n" for line in lines), tuple(origins))
