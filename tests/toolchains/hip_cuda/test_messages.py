"""What the compiler says of a wrong source, at the author's place, and of a wrong machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchains.hip_cuda.support import CudaDriver

START = "#include <hip/hip_runtime.h>\n"
ENTRY = 'extern "C" hipError_t run(int* x) { f<<<1, 32>>>(x); return hipGetLastError(); }\n'


def kernel(body: str) -> str:
    return f"{START}// a comment\n__global__ void f(int* x) {{\n{body}\n}}\n{ENTRY}"


WRONG = {
    "a name": (kernel("  x[0] = y;"), '4:10: error: identifier "y" is undefined'),
    "a statement": (kernel("  x[0] = 1"), '5:1: error: expected a ";"'),
    "a header": (f'{START}\n  #include "gone.h"\n', "3:12: error: 'gone.h' file not found"),
    "a call of the host's": (
        f"{START}int h(int);\n" + kernel("  x[0] = h(1);").removeprefix(START),
        "5:3: error: calling a __host__ function",
    ),
    "a function of the device without a body": (
        f"{START}__device__ int d(int);\n" + kernel("  x[0] = d(1);").removeprefix(START),
        "2:16: error: undefined symbol 'd' in device code",
    ),
    "a function of the host without a body": (
        kernel("  x[0] = 1;") + 'extern "C" int gone(void);\nint g() { return gone(); }\n'
        'extern "C" int h() { return g(); }\n',
        "error: undefined symbol 'gone'",
    ),
    "memory by new": (
        kernel("  x[0] = 1;") + 'extern "C" int* h(int n) { return new int[n]; }\n',
        "error: undefined symbol 'operator new[]'",
    ),
    "too much shared memory": (
        kernel("  __shared__ int big[20000];\n  big[x[0]] = 1;\n  x[1] = big[x[2]];"),
        "3:17: error: kernel 'f' uses too much shared data (0x13880 bytes, 0xc000 max)",
    ),
    "inline assembly": (
        kernel('  asm("bogus %0;" : "=r"(x[0]));'),
        "4:8: error: Not a name of any known instruction: 'bogus'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_source_is_told_at_its_place(
    cuda_driver: CudaDriver, tmp_path: Path, name: str
) -> None:
    text, expected = WRONG[name]
    source = tmp_path / "wrong.hip"
    source.write_text(text)
    message = cuda_driver.refuse(source)
    assert expected in message
    assert message.startswith(f"{source}:"), message


UNSUPPORTED = {
    "texture<float> t;": "texture",
    "__builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, 0, 0, 0);": "MFMA",
    "__builtin_amdgcn_mov_dpp(x, 1, 2, 3, true);": "DPP",
    "#include <hipcub/hipcub.hpp>": "library 'hipcub'",
    "#include <torch/extension.h>": "library 'torch'",
    "const char* when = __TIME__;": "time of day",
}


@pytest.mark.parametrize("line", UNSUPPORTED)
def test_what_is_not_supported_is_named(cuda_driver: CudaDriver, tmp_path: Path, line: str) -> None:
    source = tmp_path / "refused.hip"
    source.write_text(f"{START}\n{line}\n")
    message = cuda_driver.refuse(source)
    assert f"{source}:3:" in message
    assert "unsupported" in message
    assert UNSUPPORTED[line] in message


WAVES = {
    "  x[0] = __shfl(x[1], 0, 64);": "a shuffle among 64 lanes",
    "  x[0] = __shfl_xor(x[1], 32);": "a shuffle over a distance of 32",
    "  x[0] = __shfl_down_sync(~0ull, x[1], 1, 64);": "a shuffle among 64 lanes",
    "  for (int o = 32; o > 0; o /= 2) x[0] += __shfl_down(x[1], o);": "a distance of 32",
    "  constexpr int kWarpSize = 64;": "'kWarpSize' is 64",
    "#define WAVE_SIZE 64": "'WAVE_SIZE' is 64",
    "  cooperative_groups::tiled_partition<64>(g);": "a tile of 64 lanes",
}


@pytest.mark.parametrize("line", WAVES)
def test_waves_of_64_lanes_are_refused_where_they_show(
    cuda_driver: CudaDriver, tmp_path: Path, line: str
) -> None:
    source = tmp_path / "waves.hip"
    source.write_text(kernel(line))
    message = cuda_driver.refuse(source)
    assert f"{source}:4:" in message
    assert WAVES[line] in message
    assert "32 lanes here" in message


def test_code_for_either_wave_is_not_refused(cuda_driver: CudaDriver, tmp_path: Path) -> None:
    source = tmp_path / "either.hip"
    source.write_text(
        kernel("""\
#ifdef __HIP_PLATFORM_AMD__
  constexpr int kWave = 64;
#else
  constexpr int kWave = 32;
#endif
  for (int o = warpSize / 2; o > 0; o /= 2) x[0] += __shfl_xor(x[1], o, kWave);
  for (int s = 64; s > 0; s /= 2) x[s] += __shfl_xor(x[s], 1);
  for (int i = 32; i < 64; ++i) x[i] = 64;""")
    )
    cuda_driver.build(source, tmp_path / "either.so")


def test_a_missing_entry_is_named(cuda_driver: CudaDriver, tmp_path: Path) -> None:
    source = tmp_path / "entry.hip"
    source.write_text(kernel("  x[0] = 1;") + "int mangled() { return 1; }\n")
    message = cuda_driver.refuse(source, "--entry=mangled")
    assert "no function extern \"C\" 'mangled'" in message
    assert 'there is one that is not extern "C"' in message
    assert 'extern "C" functions: run' in message


def test_a_wrong_architecture_lists_those_that_there_are(
    cuda_driver: CudaDriver, tmp_path: Path
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(kernel("  x[0] = 1;"))
    done = cuda_driver.run(source, tmp_path / "k.so", arch="sm_999")
    assert done.returncode == 2
    assert "invalid choice: 'sm_999'" in done.stderr
    assert "sm_90" in done.stderr


def test_an_absent_or_another_compiler_is_the_machines_fault(
    cuda_driver: CudaDriver, tmp_path: Path
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(kernel("  x[0] = 1;"))
    absent = CudaDriver(f"nvcc:{tmp_path}", cuda_driver.host)
    done = absent.run(source, tmp_path / "k.so")
    assert done.returncode == 3
    assert "no bin/cudafe++ in" in done.stderr
    hostless = CudaDriver(cuda_driver.cuda, ("--host", f"zig:{tmp_path}", "--headers", "/"))
    done = hostless.run(source, tmp_path / "k.so")
    assert done.returncode == 3
    assert "no zig in" in done.stderr


def test_another_version_of_cuda_is_told(cuda_driver: CudaDriver, tmp_path: Path) -> None:
    old = tmp_path / "cuda"
    for name in ("bin/cudafe++", "nvvm/bin/cicc", "bin/ptxas", "bin/fatbinary"):
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).touch()
    (old / "include").mkdir()
    (old / "include" / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  12040\n")
    source = tmp_path / "k.hip"
    source.write_text(kernel("  x[0] = 1;"))
    done = CudaDriver(f"nvcc:{old}", cuda_driver.host).run(source, tmp_path / "k.so")
    assert done.returncode == 3
    assert "CUDA 12.4" in done.stderr
    assert "needs version 13" in done.stderr
