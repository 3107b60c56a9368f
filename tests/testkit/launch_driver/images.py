"""Images of device code: kernels that Triton has compiled, and libraries that hold some."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from tests.testkit.c_compiler import compile_library

KERNEL = """\
    import triton
    import triton.language as tl

    @triton.jit
    def doubled(x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.sum(tl.load(x + at, mask=at < n), 0), mask=at < n)
"""
COMPILING = """\
    import importlib.util, sys, triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    def compiled(path):
        spec = importlib.util.spec_from_file_location("module", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        source = ASTSource(fn=module.doubled, signature=types, constexprs={"BLOCK": 256})
        target, kind = TARGETS[sys.argv[1]]
        return triton.compile(source, target=GPUTarget(*target)).asm[kind]

    TARGETS = {"cuda": (("cuda", 90, 32), "cubin"), "rocm": (("hip", "gfx942", 64), "hsaco")}
    for path in sys.argv[2:]:
        with open(path + ".code", "wb") as file:
            file.write(compiled(path))
"""
IMAGES = """\
    // A fat binary: a header that says how much follows. One that nobody can write, one in memory.
    typedef struct {
      unsigned magic;
      unsigned short version, header;
      unsigned long size;
      char code[64];
    } Fat;
    const Fat sealed = {0xBA55ED50, 1, 16, 64, "code"};
    Fat writable = {0xBA55ED50, 1, 16, 64, "code"};
    struct {
      unsigned magic, version;
      const void *data, *file;
    } wrapper = {0x466243B1, 1, &sealed, 0};
"""


HIP_IMAGES = """\
    // Clang's bundle of code objects, as libraries register it. One that nobody can write, one in
    // memory. And places that stand for kernels.
    typedef struct {
      char magic[24];
      unsigned long count, offset, size, name_bytes;
      char name[8], code[64];
    } Bundle;
    #define BUNDLE {"__CLANG_OFFLOAD_BUNDLE__", 1, 64, 64, 8, "hipv4-am", "code"}
    const Bundle sealed = BUNDLE;
    Bundle writable = BUNDLE;
    struct {
      unsigned magic, version;
      const void *data, *file;
    } wrapper = {0x48495046, 1, &sealed, 0};
    char stands[64] = "kernels";
"""


def compile_modules(platform: str, *folders: Path) -> None:
    """Write ``kernel.py`` into each folder, and ``kernel.py.code``, compiled for ``platform``.

    The kernels differ, or Triton's cache would take one for the other.
    """
    modules = []
    for number, folder in enumerate(folders):
        folder.mkdir()
        modules.append(folder / "kernel.py")
        modules[-1].write_text(textwrap.dedent(KERNEL).replace("BLOCK +", f"BLOCK + {number} +"))
    command = [sys.executable, "-c", textwrap.dedent(COMPILING), platform, *map(str, modules)]
    cache = {"TRITON_CACHE_DIR": str(folders[0] / "cache")}
    subprocess.run(command, check=True, env=cache)


def build_library(path: Path, images: str = IMAGES) -> None:
    """A shared library with the images ``sealed``, ``writable``, and a ``wrapper`` of the first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text(textwrap.dedent(images))
    compile_library(path, [str(source)], f"-Wl,-soname,{path.name}")
