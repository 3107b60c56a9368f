"""What kernels take of a processor, and how many waves fit, against what LLVM says of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from architectures import ARCHITECTURES, occupancy
from code_object import KernelResources, kernel_resources
from rocm_compilers import ASSEMBLY, CODE_OBJECT, find_rocm_compiler

from tests.toolchains.hip_rocm import support

SAID = {
    "registers": "TotalNumVgprs",
    "accumulation_registers": "NumAgprs",
    "scalar_registers": "TotalNumSgprs",
    "shared_bytes": "LDSByteSize",
    "stack_bytes": "ScratchSize",
    "code_bytes": "codeLenInByte",
    "occupancy": "Occupancy",
}
"""Our names, and those in the comments of LLVM's assembly."""


@dataclass(frozen=True)
class Compiled:
    """``resources.hip`` for one processor."""

    assembly: str
    image: bytes
    kernels: tuple[KernelResources, ...]


Compile = Callable[[str], Compiled]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """``resources.hip`` for an architecture, compiled once: its assembly, and what we find."""

    @cache
    def once(arch: str) -> Compiled:
        cwd = tmp_path_factory.mktemp(arch)
        architecture = ARCHITECTURES[arch]
        compiler = find_rocm_compiler(f"zig:{support.ZIG}", support.LIBRARIES)
        source = str(support.KERNELS / "resources.hip")
        for done in (
            compiler.device(source, architecture, cwd),
            compiler.code_object(architecture, cwd),
        ):
            assert done.returncode == 0, done.messages
        image = (cwd / CODE_OBJECT).read_bytes()
        kernels = kernel_resources(image, architecture)
        return Compiled((cwd / ASSEMBLY).read_text(), image, kernels)

    return once


def said_by_llvm(assembly: str, kernel: str, value: str) -> int | None:
    body = assembly.split(f"\n{kernel}:", 1)[1].split("; Kernel info:", 1)[1]
    found = re.search(rf"^; {value}\s*[:=]\s*(\d+)", body, re.MULTILINE)
    end = body.find("; Kernel info:")
    return int(found.group(1)) if found and (end < 0 or found.start() < end) else None


@pytest.mark.parametrize("arch", support.OTHER_HALF)
def test_each_figure_is_what_llvm_says(arch: str, compiled: Compile) -> None:
    assembly = compiled(arch).assembly

    assert len(compiled(arch).kernels) == 9
    for kernel in compiled(arch).kernels:
        for ours, theirs in SAID.items():
            said = said_by_llvm(assembly, kernel.name, theirs)
            if said is not None:
                assert getattr(kernel, ours) == said, (kernel.name, ours)
        assert said_by_llvm(assembly, kernel.name, "Occupancy") is not None
        assert kernel.wave == (32 if arch in {"gfx1100", "gfx1201"} else 64)


def test_spills_are_counted_and_what_limits_the_occupancy_is_named(compiled: Compile) -> None:
    named = {kernel.name: kernel for kernel in compiled("gfx942").kernels}

    assert named["spilling"].spills > 100
    assert named["spilling"].occupancy_limit == "scalar_registers"
    assert named["little"].spills == 0
    assert named["little"].occupancy == named["little"].occupancy_most == 8
    assert named["little"].occupancy_limit == "waves"
    assert named["vectors_150"].occupancy_limit == "registers"
    assert named["shared_24000"].occupancy_limit == "shared"
    assert named["shared_24000"].shared_bytes == 24000


@pytest.mark.parametrize(
    ("arch", "vectors", "waves"),
    [
        *(("gfx90a", 64, 8), ("gfx90a", 65, 7), ("gfx90a", 128, 4), ("gfx942", 512, 1)),
        *(("gfx1100", 96, 16), ("gfx1100", 97, 12), ("gfx1201", 256, 5), ("gfx906", 25, 9)),
    ],
)
def test_registers_are_given_out_in_granules(arch: str, vectors: int, waves: int) -> None:
    held = occupancy(ARCHITECTURES[arch], vectors=vectors, scalars=16, shared=0, block=256)

    assert held.waves == waves


def test_a_larger_data_share_holds_more_blocks() -> None:
    def waves(arch: str) -> int:
        share = occupancy(ARCHITECTURES[arch], vectors=8, scalars=16, shared=40000, block=256)
        return share.waves

    assert (waves("gfx942"), waves("gfx950")) == (1, 4)


def test_dynamic_shared_memory_counts_where_a_launch_is_known(compiled: Compile) -> None:
    image = compiled("gfx942").image

    found = kernel_resources(image, ARCHITECTURES["gfx942"], dynamic_shared=20000)
    named = {kernel.name: kernel for kernel in found}

    assert named["little"].shared_bytes == 20000
    assert named["shared_24000"].shared_bytes == 44000
    assert named["shared_24000"].occupancy < named["vectors_40"].occupancy


def test_what_is_no_code_object_is_refused(tmp_path: Path) -> None:
    host = Path("/proc/self/exe").read_bytes()

    with pytest.raises(ValueError, match="no ELF file"):
        kernel_resources(b"text", ARCHITECTURES["gfx942"])
    with pytest.raises(ValueError, match="has no metadata"):
        kernel_resources(host, ARCHITECTURES["gfx942"])
