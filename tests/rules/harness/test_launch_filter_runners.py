"""Runners whose device's driver has the launch filter before it; the driver is a double."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import mmap
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from base.program import CandidateFault, MachineFault, Program, RunnerPolicy
from gpu import session
from run_support import DOUBLING, ROOT, TOOLS, compile_to, library, scratch
from runners import driver_front, launcher_process
from runners.launcher import Launcher
from terms.reasons import Reason

from tests.testkit import launch_driver
from tests.testkit.c_compiler import compile_library

LAUNCHING = """\
    %s
    #include <dlfcn.h>
    #include <fcntl.h>
    #include <stdio.h>

    typedef int (*Load)(void**, const void*);
    typedef int (*Get)(void**, void*, const char*);
    typedef int (*Launch)(void*, int, int, int, int, int, int, int, void*, void**, void**);

    __attribute__((constructor)) static void work(void) {
      void* driver = dlopen("libcuda.so.1", RTLD_NOW);
      void *module, *made;
      ((Load)dlsym(driver, "cuModuleLoadData"))(&module, "code that is in no file's code");
      ((Get)dlsym(driver, "cuModuleGetFunction"))(&made, module, "smuggled");
      int error = ((Launch)dlsym(driver, "cuLaunchKernel"))(made, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
      printf("launched: %%d\\n", error);
      fflush(stdout);
    }
"""
OPENING = """\
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdio.h>
    #include <string.h>
    #include <unistd.h>

    // Looks for the double's code in whatever file a path leads to.
    static void look_at(const char* path) {
      static char bytes[1 << 20];
      static volatile char wanted[] = "Double_launched";  // which is not in this library itself
      wanted[0] = 'd';
      int file = open(path, O_RDONLY);
      ssize_t size = read(file, bytes, sizeof bytes);
      printf("%s: %zd\\n", path, size);
      if (size > 0 && memmem(bytes, size, (char*)wanted, 15)) printf("found the driver\\n");
    }

    __attribute__((constructor)) static void look(void) {
      char path[4096], line[4096];
      FILE* maps = fopen("/proc/self/maps", "r");
      while (fgets(line, sizeof line, maps))
        if (strstr(line, ".so") && sscanf(line, "%*s %*s %*s %*s %*s %s", path) == 1) look_at(path);
      for (int fd = 4; fd < 20; ++fd) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        look_at(path);
      }
      fflush(stdout);
    }
"""


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filter, with the double behind it under the driver's own name elsewhere."""
    folder = tmp_path_factory.mktemp("filter")
    launch_driver.CUDA.build_front(folder)
    (folder / "driver").mkdir()
    (folder / launch_driver.BEHIND).rename(folder / "driver/libcuda.so.1")
    return folder / "libcuda.so.1"


@pytest.fixture
def launcher(front: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    """A launcher of a machine whose driver is the double."""
    found = "libcuda.so.1", str(front.parent / "driver/libcuda.so.1")
    monkeypatch.setattr(driver_front, "_found_by_loader", lambda names, module: found)
    monkeypatch.setattr(session, "check", lambda: None)  # there is no device to look at
    driver_front._make.cache_clear()
    with Launcher.start() as started:
        yield started
    driver_front._make.cache_clear()


@pytest.fixture(scope="module")
def runner() -> str:
    """The native runner for NVIDIA's devices."""
    folders = (TOOLS / "runner", TOOLS / "runner_cuda")
    sources = sorted(str(path) for folder in folders for path in folder.glob("*.cpp"))
    strict = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
    return compile_to(scratch() / "cuda-runner", [*strict, *sources])


def program(runner: str, front: Path, source: str) -> Program:
    return Program(
        "hip", library(source, "-ldl"), "k", (), runner, "cuda", launch_filter=str(front)
    )


def test_a_library_that_launches_what_is_not_its_own_is_rejected(
    launcher: Launcher, runner: str, front: Path
) -> None:
    """The refusal is named, whatever the candidate makes of the error."""
    candidate = program(runner, front, LAUNCHING % "")

    with pytest.raises(CandidateFault) as caught:
        launcher.open(candidate, DOUBLING, RunnerPolicy(own_kernels=True))

    assert caught.value.reason is Reason.KERNEL_BYPASSED
    assert "launched kernels that are not its own: smuggled" in caught.value.detail
    assert "launched: 800" in caught.value.detail


def test_a_baseline_may_launch_it(launcher: Launcher, runner: str, front: Path) -> None:
    """It is trusted, and its launches are counted."""
    candidate = program(runner, front, LAUNCHING % "")

    with launcher.open(candidate, DOUBLING) as opened:
        counts = opened.launched()
        said = opened.said()

    assert counts is not None
    assert (counts.kernels, counts.refused) == (1, 0)
    assert "launched: 0" in said


def test_the_drivers_own_file_cannot_be_opened(
    launcher: Launcher, runner: str, front: Path
) -> None:
    """What stands in its place is the filter, and a descriptor of it is closed."""
    candidate = program(runner, front, LAUNCHING % OPENING)

    with launcher.open(candidate, DOUBLING) as opened:
        said = opened.said()

    assert "libcuda.so.1: " in said
    assert "found" not in said


def test_a_runner_without_its_filter_is_the_machines_failure(
    launcher: Launcher, runner: str, front: Path, tmp_path: Path
) -> None:
    """Nobody is judged by a runner that did not put itself under it."""
    driver = launch_driver.CUDA.build_driver(tmp_path / "libcuda.so.1")
    candidate = replace(program(runner, front, "int k;"), launch_filter=str(driver))

    with pytest.raises(MachineFault, match="launch filter is not in the driver's place"):
        launcher.open(candidate, DOUBLING)


HIP_LAUNCHING = """\
    #include <stdio.h>

    typedef struct { unsigned x, y, z; } dim3;
    void** __hipRegisterFatBinary(const void*);
    void __hipRegisterFunction(void**, const void*, char*, const char*, unsigned, void*, void*,
                               void*, void*, int*);
    int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
    int hipModuleLoadData(void**, const void*);
    int hipModuleGetFunction(void**, void*, const char*);
    int hipModuleLaunchKernel(void*, int, int, int, int, int, int, int, void*, void**, void**);

    static const struct {
      char magic[24];
      unsigned long count, offset, size, name_bytes;
      char name[8], code[64];
    } bundle = {"__CLANG_OFFLOAD_BUNDLE__", 1, 64, 64, 8, "hipv4-am", "code"};
    static const struct { unsigned magic, version; const void *data, *file; }
      wrapper = {0x48495046, 1, &bundle, 0};
    static char stand;

    __attribute__((constructor)) static void work(void) {
      dim3 one = {1, 1, 1};
      void** binary = __hipRegisterFatBinary(&wrapper);
      __hipRegisterFunction(binary, &stand, "own", "own", -1, 0, 0, 0, 0, 0);
      printf("own: %%d\\n", hipLaunchKernel(&stand, one, one, 0, 0, 0));
      if (%d) {
        void *module, *made;
        hipModuleLoadData(&module, "code of a library");
        hipModuleGetFunction(&made, module, "Cijk_Ailk");
        printf("gemm: %%d\\n", hipModuleLaunchKernel(made, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
      }
      fflush(stdout);
    }
"""


@pytest.fixture(scope="module")
def rocm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filter of rocm, before a double that needs a library beside it, as HIP's runtime does."""
    folder = tmp_path_factory.mktemp("rocm")
    launch_driver.ROCM.build_front(folder)
    lib = folder / "opt/lib"
    lib.mkdir(parents=True)
    beside = lib / "libhsa-double.so"
    (lib / "hsa.c").write_text("int hsa_double(void) { return 7; }\n")
    compile_library(beside, [str(lib / "hsa.c")], f"-Wl,-soname,{beside.name}")
    with (folder / "libkabuild-driver.c").open("a") as source:
        source.write("int hsa_double(void);\nint needs(void) { return hsa_double(); }\n")
    flags = ("-Wl,-soname,libamdhip64.so.7", "-Wl,-Bsymbolic", "-Wl,-rpath,$ORIGIN")
    sources = [str(folder / "libkabuild-driver.c"), str(beside)]
    compile_library(lib / "libamdhip64.so.7", sources, *flags)
    return folder


@pytest.fixture(scope="module")
def rocm_runner() -> str:
    """The native runner for AMD's devices."""
    shared = ("clock.cpp", "gate.cpp", "hiding.cpp", "launches.cpp", "mapping.cpp")
    sources = [str(TOOLS / "runner_cuda" / name) for name in shared]
    for folder in (TOOLS / "runner", TOOLS / "runner_rocm"):
        sources += sorted(str(path) for path in folder.glob("*.cpp"))
    strict = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
    return compile_to(scratch() / "rocm-runner", [*strict, *sources])


@pytest.mark.parametrize("abi", ["hip", "python"])
def test_the_driver_of_rocm_finds_what_lies_beside_it(
    rocm: Path, rocm_runner: str, abi: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened by another path than its own, and its libraries are beside that one."""
    found = "libamdhip64.so.7", str(rocm / "opt/lib/libamdhip64.so.7")
    monkeypatch.setattr(driver_front, "_found_by_loader", lambda names, module: found)
    monkeypatch.setattr(session, "check", lambda: None)
    driver_front._make.cache_clear()
    library_of = library(HIP_LAUNCHING % 1)
    candidate = Program(
        "hip", library_of, "k", (), rocm_runner, "rocm", launch_filter=str(rocm / "libamdhip64.so")
    )
    if abi == "python":
        child = os.fork()  # a process that has loaded a driver keeps it
        if child == 0:
            try:
                front = driver_front.front_of(replace(candidate, abi="python"))
                assert front is not None
                driver = ctypes.CDLL(front.driver)
                os._exit(driver.needs())
            finally:
                os._exit(99)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        driver_front.clean_up()
        return
    with Launcher.start() as launcher:
        honest = replace(candidate, path=library(HIP_LAUNCHING % 0))
        with launcher.open(honest, DOUBLING, RunnerPolicy(own_kernels=True)) as opened:
            assert "own: 0" in opened.said()
            counts = opened.launched()
            assert counts is not None
            assert (counts.kernels, counts.refused) == (1, 0)
        with pytest.raises(CandidateFault) as caught:
            launcher.open(candidate, DOUBLING, RunnerPolicy(own_kernels=True))
    driver_front._make.cache_clear()

    assert caught.value.reason is Reason.KERNEL_BYPASSED
    assert "launched kernels that are not its own: Cijk_Ailk" in caught.value.detail
    assert "gemm: 801" in caught.value.detail


def test_the_driver_of_python_runners_is_the_one_that_torch_brings(tmp_path: Path) -> None:
    """Where a module loads one; else, and where it loads none, the machine's."""
    for name in ("brought/libdouble.so.7", "machine/libdouble.so.7"):
        path = tmp_path / name
        path.parent.mkdir()
        (tmp_path / "empty.c").write_text("int nothing;\n")
        compile_library(path, [str(tmp_path / "empty.c")])
    (tmp_path / "brings.py").write_text(
        f"import ctypes\nkept = ctypes.CDLL({str(tmp_path / 'brought/libdouble.so.7')!r})\n"
    )
    asking = f"""
        import sys
        sys.path += [{str(TOOLS)!r}, {str(ROOT / "kabuild/sandbox")!r}, {str(tmp_path)!r}]
        from runners import driver_front
        for module in ("brings", "json", ""):
            print(*driver_front._found_by_loader(("libdouble.so.7", "libdouble.so.6"), module))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(asking)],
        env={"LD_LIBRARY_PATH": str(tmp_path / "machine")},
        check=True,
        capture_output=True,
        text=True,
    )

    of_machine = f"libdouble.so.7 {tmp_path}/machine/libdouble.so.7"
    assert done.stdout.splitlines() == [
        f"libdouble.so.7 {tmp_path}/brought/libdouble.so.7",
        of_machine,
        of_machine,
    ]


@pytest.mark.parametrize("folder", ["a\x0cb", "a\x85b", "a\udcffb"])
def test_a_driver_is_found_in_a_folder_of_any_name(tmp_path: Path, folder: str) -> None:
    """The kernel's list of what is mapped has the name as it is, which need not be UTF-8."""
    place = tmp_path / folder / "libmapped.so.1"
    place.parent.mkdir()
    place.write_bytes(bytes(mmap.PAGESIZE))

    with place.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        assert driver_front._mapped("libmapped.so.1") == str(place)


@pytest.mark.parametrize("ahead", [True, False])
def test_the_filter_is_loaded_before_what_binds_to_the_driver(
    monkeypatch: pytest.MonkeyPatch, *, ahead: bool
) -> None:
    """Triton's own module binds to whichever driver is there, for all runners."""
    did: list[str] = []

    def refused(*_: object, **__: object) -> None:
        raise OSError("no runner is wanted")

    monkeypatch.setattr(driver_front, "front_of", lambda _: did.append("filter"))
    monkeypatch.setattr(launcher_process, "_preload", lambda _: did.append("triton"))
    monkeypatch.setattr("namespaces.fork_contained", refused)
    program = Program("python", "/nowhere/kernel.py", "k", platform="cuda", launch_filter="f.so")
    if ahead:
        launcher_process._prepare(json.dumps(dataclasses.asdict(program)).encode())
    else:
        told = {
            "program": dataclasses.asdict(program),
            "policy": dataclasses.asdict(RunnerPolicy()),
        }
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
        launcher_process._launch(json.dumps({**told, "supervised": None}).encode(), fds)

    assert did == ["filter", "triton"]
