"""The same kernels by another compiler, and for another processor."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from compilers import ZigCompiler, find_compiler
from cpu_builds import build_kernel, build_runtime
from elf import Machine
from native import build_program

from tests.toolchains.hip.support import HERE, HIP, ZIG, Driver

EMULATOR = shutil.which("qemu-aarch64")
SYSROOT = Path("/usr/aarch64-linux-gnu")

SELF_TEST = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

template <class F>
static F find(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

int main(int argc, char** argv) {
  void* libraries[4] = {};
  for (int i = 1; i < argc; ++i) {
    libraries[i - 1] = dlopen(argv[i], RTLD_NOW | (i == 1 ? RTLD_GLOBAL : RTLD_LOCAL));
    if (libraries[i - 1] == nullptr) {
      puts(dlerror());
      return 1;
    }
  }
  static float in[10000];
  static float sums[8];
  for (int i = 0; i < 10000; ++i) in[i] = 1.0f;
  find<int (*)(const float*, float*, int, int)>(libraries[1], "launch_block_sums")(in, sums, 10000,
                                                                                   8);
  float total = 0.0f;
  for (float sum : sums) total += sum;
  float wave = 0.0f;
  find<int (*)(const float*, float*, int, int)>(libraries[2], "launch_block_sum")(in, &wave, 999,
                                                                                  256);
  int memory = find<int (*)()>(libraries[3], "check_memory")();
  printf("%g %g %d\\n", total, wave, memory);
  return 0;
}
"""
KERNELS = ("barrier", "wave", "host_api")


def build_all(compiler: ZigCompiler, directory: Path) -> list[Path]:
    """The self test's program, the runtime and the kernels."""
    (directory / "main.cpp").write_text(SELF_TEST)
    program, runtime = directory / "program", directory / "libhipcpu.so"
    build_program([directory / "main.cpp"], program, compiler)
    build_runtime(runtime, compiler)
    libraries = [directory / f"{name}.so" for name in KERNELS]
    for library in libraries:
        source = HERE / "kernels" / f"{library.stem}.hip"
        build_kernel(source, library, compiler, wave_size=64)
    return [program, runtime, *libraries]


def test_aarch64_under_emulation(tmp_path: Path) -> None:
    built = build_all(ZigCompiler(ZIG, Machine.AARCH64), tmp_path)
    for path in built:
        assert path.read_bytes()[18] == Machine.AARCH64
    if EMULATOR is None or not SYSROOT.is_dir():
        pytest.skip("compiled; not run: no qemu-aarch64 with a C library for it")
    command = [EMULATOR, "-L", str(SYSROOT), *map(str, built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "10000 999 0\n", done.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")
def test_adopted_compiler(driver: Driver, tmp_path: Path) -> None:
    adopted = replace(driver, compiler="cxx:g++")
    (tmp_path / "main.cpp").write_text(SELF_TEST)
    build_program([tmp_path / "main.cpp"], tmp_path / "program", find_compiler("cxx:g++"))
    adopted.build("runtime", "-o", tmp_path / "libhipcpu.so")
    command = [tmp_path / "program", tmp_path / "libhipcpu.so"]
    for name in KERNELS:
        adopted.build("kernel", HERE / "kernels" / f"{name}.hip", "-o", tmp_path / f"{name}.so")
        command.append(tmp_path / f"{name}.so")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "10000 999 0\n", done.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")
@pytest.mark.parametrize("name", ["atomics", "launch", "mathematics", "small_floats"])
def test_adopted_compiler_takes_every_header(driver: Driver, tmp_path: Path, name: str) -> None:
    adopted = replace(driver, compiler="cxx:g++")
    source = HERE / "kernels" / f"{name}.hip"
    adopted.build("kernel", source, "-o", tmp_path / "one.so", "--wave", "32")
    adopted.build("kernel", source, "-o", tmp_path / "two.so", "--wave", "32")
    assert (tmp_path / "one.so").read_bytes() == (tmp_path / "two.so").read_bytes()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ on this machine")
def test_adopted_compiler_s_errors_are_translated(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text("#include <hip/hip_runtime.h>\n\n// wrong\nint f() { return  missing; }\n")
    message = replace(driver, compiler="cxx:g++").refuse(source)
    assert message.startswith(f"{source}:4:19: error: "), message


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("driver/compile_hip.py", "NVIDIA's processors"),
        ("host/native.py", "native programs"),
    ],
)
def test_python_starts_the_drivers_without_other_packages(
    tmp_path: Path, script: str, says: str
) -> None:
    """They run where only the standard library is."""
    done = subprocess.run(
        [sys.executable, "-E", "-s", "-S", str(HIP / script), "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
