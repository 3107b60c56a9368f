"""HIP compiled for AMD's processors, where there is none and no ROCm either."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from code_object import kernel_resources
from elf import read_section, read_symbols

from tests.toolchains.hip_rocm import support
from tests.toolchains.hip_rocm.support import KERNELS, RocmDriver

WAVES = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32}
ENTRIES = ("features_f32", "features_f16", "features_bf16", "features_lanes")
# What clang wants to have been declared before it makes a kernel: the headers cost a second.
LAUNCH = (
    "struct dim3 { unsigned x, y, z; };"
    'extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);'
)
SMALL = f"""\
#define KERNEL __attribute__((global))
{LAUNCH.replace("{", "{{").replace("}", "}}")}
{{comment}}
KERNEL void fill(float* y, int value) {{{{{{layout}}
  y[__builtin_amdgcn_workitem_id_x()] = value;
}}}}
extern "C" int nothing() {{{{ return 0; }}}}
"""


@pytest.fixture
def driver() -> RocmDriver:
    return RocmDriver()


@pytest.mark.parametrize("arch", support.FIRST_HALF)
def test_what_kernels_use_compiles_for_each_processor(
    driver: RocmDriver, arch: str, tmp_path: Path
) -> None:
    library = tmp_path / "features.so"
    entries = [f"--entry={entry}" for entry in ENTRIES]

    kernels = driver.build(KERNELS / "features.hip", library, arch, *entries)

    assert len(kernels) == 7
    for kernel in kernels:
        assert kernel["arch"] == arch
        assert kernel["wave"] == WAVES[arch]
        assert kernel["registers"] > 0
        assert kernel["code_bytes"] > 100
        assert kernel["spills"] == 0
    exported = {symbol.name for symbol in read_symbols(library.read_bytes()) if symbol.defined}
    assert exported == set(ENTRIES)


@pytest.mark.parametrize("name", ["mathematics", "barrier"])
def test_kernels_of_the_cpu_platform_compile_unchanged(
    driver: RocmDriver, name: str, tmp_path: Path
) -> None:
    source = support.ROOT / "tests" / "toolchains" / "hip" / "kernels" / f"{name}.hip"

    assert driver.build(source, tmp_path / "kernel.so", "gfx1201")


def test_host_code_has_the_parts_of_the_library_that_it_has_on_the_cpu(
    driver: RocmDriver, tmp_path: Path
) -> None:
    source, library = tmp_path / "k.hip", tmp_path / "k.so"
    source.write_text(
        SMALL.format(comment="", layout="")
        + 'extern "C" int* several(int n) { return new int[n]; }\n'
    )

    assert driver.build(source, library, "gfx942")


def test_a_library_holds_its_code_as_the_runtime_wants_it(
    driver: RocmDriver, tmp_path: Path
) -> None:
    source, library = tmp_path / "k.hip", tmp_path / "k.so"
    source.write_text(SMALL.format(comment="", layout=""))
    driver.build(source, library, "gfx942")

    bundle = read_section(library.read_bytes(), ".hip_fatbin")

    assert bundle.startswith(b"__CLANG_OFFLOAD_BUNDLE__")
    assert b"hipv4-amdgcn-amd-amdhsa--gfx942" in bundle[:256]
    code = bundle[bundle.index(b"\x7fELF") :]
    (kernel,) = kernel_resources(code, support.architecture("gfx942"))
    assert "fill" in kernel.name


def test_equal_tokens_give_equal_bytes_wherever_they_are_compiled(
    driver: RocmDriver, tmp_path: Path
) -> None:
    driver = replace(driver, anew=True)
    outputs: list[bytes] = []
    for name, comment, layout in (
        ("here", "", ""),
        ("else/where", "// What it does is\n// said here.\n", "\n\n"),
    ):
        directory = tmp_path / name
        directory.mkdir(parents=True)
        source = directory / f"{len(outputs)}.hip"
        source.write_text(SMALL.format(comment=comment, layout=layout))
        driver.build(source, directory / "k.so", "gfx942")
        outputs.append((directory / "k.so").read_bytes())

    assert outputs[0] == outputs[1]
    assert str(tmp_path).encode() not in outputs[0]


def test_another_constant_gives_other_bytes(driver: RocmDriver, tmp_path: Path) -> None:
    outputs = []
    for value in ("value", "value + 1"):
        source = tmp_path / "k.hip"
        source.write_text(SMALL.format(comment="", layout="").replace("= value", f"= {value}"))
        driver.build(source, tmp_path / "k.so", "gfx1100")
        outputs.append((tmp_path / "k.so").read_bytes())

    assert outputs[0] != outputs[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  y[0] = undeclared;", "k.hip:7:10: error: use of undeclared identifier 'undeclared'"),
        ("  y[0] = 1", "k.hip:7:11: error: expected ';' after expression"),
        ("  y[0] = __DATE__[0];", "k.hip:7:10: unsupported: time of day in a compiled kernel"),
        ("  __nvvm_bar_sync(0);", "k.hip:7:3: unsupported: builtin of NVIDIA's compiler"),
        ('#include "../secret.h"', "'../secret.h' is outside the include directories"),
        ("#include <cub/cub.cuh>", "unsupported: library 'cub'"),
        ("  nowhere(y);", "undefined symbol 'nowhere(float*)' in device code"),
    ],
)
def test_what_is_wrong_is_said_at_the_line_of_the_author(
    driver: RocmDriver, tmp_path: Path, line: str, message: str
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(
        "// One comment,\n"
        "/* and another\n"
        "   one. */\n"
        "__attribute__((device)) void nowhere(float*);\n"
        f"{LAUNCH}\n"
        f"__attribute__((global)) void fill(float* y) {{\n{line}\n}}\n"
    )

    assert message in driver.refuse(source, "gfx942")


def test_a_missing_entry_is_named(driver: RocmDriver, tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(SMALL.format(comment="", layout=""))

    refused = driver.refuse(source, "gfx1201", "--entry=fill_f32")

    assert "no function extern \"C\" 'fill_f32'" in refused


def test_without_the_runtime_nothing_is_called_by_accident(
    driver: RocmDriver, tmp_path: Path
) -> None:
    """The names of HIP's runtime are found when the library is loaded, or it is not loaded."""
    source, library = tmp_path / "k.hip", tmp_path / "k.so"
    source.write_text(SMALL.format(comment="", layout=""))
    driver.build(source, library, "gfx942")

    with pytest.raises(OSError, match=r"undefined symbol: (__)?hip"):
        ctypes.CDLL(str(library))


def test_a_broken_toolchain_is_not_the_kernels_fault(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(SMALL.format(comment="", layout=""))

    for compiler, message in (
        (f"zig:{tmp_path}", f"no zig in {tmp_path}"),
        (f"rocm:{tmp_path}", f"no clang++ of ROCm below {tmp_path}"),
    ):
        done = RocmDriver(compiler).run(source, tmp_path / "k.so", "gfx942")
        assert (done.returncode, message in done.stderr) == (3, True), done.stderr


OTHER_NAMES = """\
#include <hip/hip_runtime.h>
extern "C" const char __hip_fatbin_5f[];
extern "C" void* __hip_gpubin_handle_5f;
extern "C" hipError_t first() {
  return (hipError_t)(__hip_fatbin_5f[0] + (__hip_gpubin_handle_5f != nullptr));
}
"""


def test_the_bundle_is_there_under_the_names_of_other_clangs(
    driver: RocmDriver, tmp_path: Path
) -> None:
    """As that of ROCm 6 has them, and Debian's clang 19."""
    source, library = tmp_path / "k.hip", tmp_path / "k.so"
    source.write_text(OTHER_NAMES)

    assert driver.build(source, library, "gfx942") == []
    assert ctypes.CDLL(str(library)).first() == ord("_")  # of __CLANG_OFFLOAD_BUNDLE__


def test_a_name_cannot_bring_assembly_along(driver: RocmDriver, tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    name = r"__hip_fatbin_\n.incbin \"/etc/hostname\""
    source.write_text(f"""\
#include <hip/hip_runtime.h>
extern const char hidden asm("{name}");
extern "C" hipError_t first() {{ return (hipError_t)hidden; }}
""")

    assert "undefined symbol '__hip_fatbin_" in driver.refuse(source, "gfx942")


def test_an_unknown_processor_is_wrong_usage(driver: RocmDriver, tmp_path: Path) -> None:
    done = driver.run(KERNELS / "resources.hip", tmp_path / "k.so", "gfx000")

    assert done.returncode == 2
    assert "invalid choice: 'gfx000'" in done.stderr


def test_the_constants_of_amds_library_are_those_that_it_asks_for() -> None:
    """Its bitcode is the witness: each constant that it leaves open, of the same type."""
    command = [str(support.ZIG / "zig"), "clang", "-x", "ir", "--target=amdgcn-amd-amdhsa"]
    command += ["-nogpulib", "-S", "-emit-llvm", "-o", "-"]
    asked = set()
    for name in ("ocml.bc", "ockl.bc"):
        done = subprocess.run(
            [*command, str(support.LIBRARIES / "lib" / name)],
            capture_output=True,
            text=True,
            check=True,
        )
        for line in done.stdout.splitlines():
            if line.startswith("@__oclc_"):
                asked.add((line.split(" ", 1)[0], line.split(" constant ")[1].split(",")[0]))
    given = {
        (line.split(" ", 1)[0], line.split(" constant ")[1].split(" ")[0])
        for line in support.constants("gfx942").splitlines()
        if line.startswith("@")
    }

    assert asked
    assert asked <= given


def test_run_as_a_command_it_needs_nothing_of_its_environment(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(SMALL.format(comment="", layout=""))
    command = [sys.executable, str(support.DRIVER), "rocm", "kernel", "k.hip", "-o", "k.so"]
    command += [
        "--arch=gfx942",
        f"--compiler=zig:{support.ZIG}",
        f"--libraries={support.LIBRARIES}",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_each_processor_is_compiled_for_in_each_run() -> None:
    """If not here, then in ``test_resources.py``."""
    assert {*support.FIRST_HALF, *support.OTHER_HALF} == {*support.ARCHITECTURES}
