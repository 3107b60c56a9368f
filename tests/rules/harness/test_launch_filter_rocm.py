"""The launch filter before a HIP runtime that has every name and launches nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testkit import launch_driver
from tests.testkit.forks import Forks
from tests.testkit.launch_driver import images
from tests.testkit.launch_driver.programs import Run, filtered_forks, runs_in

ROOT = Path(__file__).parents[3]
FUNCTIONS = ROOT / "rules/harness/tools/launch_filter_rocm/functions.h"
# Kernels of PyTorch, as clang mangles their names.
FILL = (
    "_ZN2at6native29vectorized_elementwise_kernelILi16ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEvi"
    "T0_T1_"
)
COPY = (
    "_ZN2at6native32elementwise_kernel_manual_unrollILi128ELi8EZNS0_22gpu_kernel_impl_nocastIZZZNS0_"
    "23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE5_clEvEUlfE_EEvS4_"
    "RKT_EUlibE_EEviT1_"
)
CONVERSION = COPY.replace("22gpu_kernel_impl_nocast", "15gpu_kernel_impl")
SOFTMAX = "_ZN2at6native12_GLOBAL__N_119cunn_SoftMaxForwardILi4EfffEEvPT2_PKT0_i"
TENSILE = "Cijk_Ailk_Bljk_SB_MT128x128x16_MI32x32x2x1"

# What HIP's own headers say of the functions, structures and constants that the filter declares.
COMPARISON = """
template <typename A, typename B>
constexpr bool alike = sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B>;
template <>
constexpr bool alike<void, void> = true;
template <typename A, typename B>
struct Same : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct Same<R(A...), S(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B)> {
  static constexpr bool fits() {
    if constexpr (sizeof...(A) == sizeof...(B)) return (alike<A, B> && ... && alike<R, S>);
    return false;
  }
};
#define DECLARE(type, name, arguments) \\
  static_assert(Same<decltype(::name), type arguments>::fits(), #name);
KNOWN(DECLARE)
static_assert(sizeof(KernelNode) == sizeof(hipKernelNodeParams));
static_assert(offsetof(KernelNode, function) == offsetof(hipKernelNodeParams, func));
static_assert(offsetof(KernelNode, grid) == offsetof(hipKernelNodeParams, gridDim));
static_assert(offsetof(NodeParams, kernel) == offsetof(hipGraphNodeParams, kernel));
static_assert(offsetof(NodeParams, type) == offsetof(hipGraphNodeParams, type));
static_assert(sizeof(DeviceLaunch) == sizeof(hipLaunchParams));
static_assert(offsetof(DeviceLaunch, grid) == offsetof(hipLaunchParams, gridDim));
static_assert(sizeof(ModuleDeviceLaunch) == sizeof(hipFunctionLaunchParams));
static_assert(offsetof(Config, stream) == offsetof(hipLaunchConfig_t, stream));
static_assert(offsetof(Config, grid) == offsetof(hipLaunchConfig_t, gridDim));
static_assert(offsetof(Config, stream) == offsetof(HIP_LAUNCH_CONFIG, hStream));
static_assert(offsetof(Config, grid) == offsetof(HIP_LAUNCH_CONFIG, gridDimX));
static_assert(kNotSupported == hipErrorNotSupported && kSuccess == hipSuccess);
static_assert(hipEnablePerThreadDefaultStream == 2 && hipGraphNodeTypeKernel == 0);
static_assert(hipStreamCaptureStatusActive == 1);
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filter before the double; two modules of Triton, compiled; libraries with images."""
    folder = tmp_path_factory.mktemp("front")
    launch_driver.ROCM.build_front(folder)
    images.compile_modules("rocm", folder / "candidate", folder / "elsewhere")
    for name in ("candidate/kernel.so", "elsewhere/libother.so", "torch/lib/libtorch_hip.so"):
        images.build_library(folder / name, images.HIP_IMAGES)
    return folder


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with filtered_forks() as forks:
        yield forks


@pytest.fixture
def run(place: Path, forks: Forks) -> Run:
    """Runs a program in a process with the filter; what it prints."""
    return runs_in(
        forks,
        place,
        """
        from tests.testkit.launch_driver import names_of_hip
        from tests.testkit.launch_driver.process import Dim3, HipProcess, symbol_of
        it = HipProcess(PLACE / "libamdhip64.so")
        TORCH, MINE, OTHER = (
            f"{where}.so"
            for where in ("torch/lib/libtorch_hip", "candidate/kernel", "elsewhere/libother")
        )
        """,
    )


def test_what_the_filter_declares_is_what_hips_headers_say(tmp_path: Path) -> None:
    """Functions have the same arguments in the same places, and structures the same layout."""
    text = FUNCTIONS.read_text()
    header = (launch_driver.HIP_HEADERS / "hip/hip_runtime_api.h").read_text()
    rows = re.findall(r"  X\(\w+, (\w+),", text)
    known = set(re.findall(r"^hipError_t (hip\w+)\(", header, re.MULTILINE)) & set(rows)
    known -= set(re.findall(r"^inline hipError_t (hip\w+)\(", header, re.MULTILINE))  # overloaded
    declared = text.replace("FUNCTIONS(DECLARE)\n", "").replace("#pragma once\n", "")
    for name in set(rows) - known:  # newer, or of another header
        declared = re.sub(rf"  X\(\w+, {name},.*?\)\) *\\?\n", "", declared, flags=re.DOTALL)
    source = tmp_path / "compared.cpp"
    included = "#include <cstddef>\n#include <cstdint>\n#include <type_traits>\n"
    included += "#include <hip/hip_runtime_api.h>\n"
    own = re.sub(r"^#include.*\n", "", declared, flags=re.MULTILINE)
    own = own.partition("#define DECLARE")[0]
    compared = COMPARISON.replace("KNOWN", "FUNCTIONS")
    source.write_text(f"{included}namespace ours {{\n{own}{compared}}}\n")
    options = ["-std=c++17", "-c", "-D__HIP_PLATFORM_AMD__", "-w", "-o", str(tmp_path / "o")]
    command = [sys.executable, "-m", "ziglang", "c++", *options, "-ferror-limit=0"]

    done = subprocess.run(
        [*command, f"-I{launch_driver.HIP_HEADERS}", str(source)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert len(known) > 25


def test_every_function_of_the_runtime_is_there(run: Run) -> None:
    """Those that load and launch are the filter's, and all others the runtime's."""
    said = run("""
        where = {}
        for name in (*names_of_hip(), "hipFutureQuery"):
            address = ctypes.cast(getattr(it.front, name), ctypes.c_void_p).value
            where.setdefault(symbol_of(address), []).append(name)
        for library, found in where.items():
            print(library, *found)
    """)

    ours, theirs = (line.split() for line in sorted(said.splitlines()))

    assert ours[0] == "libamdhip64.so"
    assert theirs[0] == "libkabuild-driver.so"
    assert len(theirs) > 400
    launching = "Launch|KernelNode|GraphAddNode|^hipGraph(Exec)?NodeSetP|ProcAddr|EntryPoint"
    assert [name for name in theirs if re.search(launching, name)] == [
        "hipGraphKernelNodeCopyAttributes",
        "hipGraphKernelNodeGetAttribute",
        "hipGraphKernelNodeGetParams",
        "hipGraphKernelNodeSetAttribute",
        "hipLaunchHostFunc",
        "hipLaunchHostFunc_spt",
    ]
    assert [name for name in theirs if re.search("Load|GetFunc(?!tionCount)", name)] == []


def test_who_asks_for_addresses_gets_the_filters(run: Run) -> None:
    """By all four questions, for both kinds of streams; new ones that launch are refused."""
    said = run("""
        it.filter(own(), str(PLACE / "candidate/kernel.py"))
        def ask(question, symbol, flags=0):
            found, status = ctypes.c_void_p(), ctypes.c_int()
            version = [70100000] if "Proc" in question else []
            arguments = [symbol.encode(), ctypes.byref(found), *version, ctypes.c_ulonglong(flags)]
            assert getattr(it.front, question)(*arguments, ctypes.byref(status)) == 0
            return found.value
        def name(address):
            at = lambda n: ctypes.cast(getattr(it.front, n), ctypes.c_void_p).value
            return next((n for n in names_of_hip() if at(n) == address), symbol_of(address))
        for question in ("hipGetProcAddress", "hipGetDriverEntryPoint"):
            for kind in (question, question + "_spt"):
                print(*(name(ask(kind, s, f)) for s, f in [
                    ("hipLaunchKernel", 0), ("hipLaunchKernel", 2), ("hipModuleLaunchKernel", 2),
                    ("hipModuleLoadDataEx", 0), ("hipGraphLaunch", 2)]))
                for symbol in ("hipLaunchKernelSomehow", "hipGraphAddNode_v9"):
                    made = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ask(kind, symbol))
                    print(made(1))
                print(ctypes.CFUNCTYPE(ctypes.c_int)(ask(kind, "hipFutureQuery"))())
        print(it.launched())
    """).splitlines()

    rest = "hipLaunchKernel_spt hipModuleLaunchKernel hipModuleLoadDataEx hipGraphLaunch_spt"
    plain = [f"hipLaunchKernel {rest}", "801", "801", "77"]
    threads = [f"hipLaunchKernel_spt {rest}", "801", "801", "77"]
    assert said == [*(plain + threads) * 2, "0"]


def test_only_kernels_of_the_candidates_module_are_launched(run: Run) -> None:
    """Triton's line table names the module. PyTorch may copy and fill, nothing else."""
    said = run(f"""
        torch, other = image(TORCH, "stands"), image(OTHER, "stands")
        names = {[FILL, COPY, CONVERSION, SOFTMAX]!r}
        it.register(image(TORCH, "wrapper"), *((torch + i, n) for i, n in enumerate(names)))
        it.register(image(OTHER, "wrapper"), (other, names[0]))
        pages = own()
        it.filter(pages, str(PLACE / "candidate/kernel.py"))
        mine = it.function(it.module(code("candidate")), "doubled")
        print("mine", it.launch(mine), it.launch(mine))
        print("elsewhere", it.launch(it.function(it.module(code("elsewhere")), "doubled")))
        made = code("candidate").replace(b".debug_line", b".other_line")
        print("made at run time", it.launch(it.function(it.module(made), "doubled")))
        print("moved", it.launch_at(torch, 1000), it.launch_at(torch + 1, 1000))
        print("converted", it.launch_at(torch + 2), it.launch_at(torch + 2, 2))
        print("computed", it.launch_at(torch + 3))
        print("another library's fill", it.launch_at(other))
        print("tensile", it.launch(it.function(it.module(b"code of rocBLAS"), {TENSILE!r})))
        print("unknown", it.launch(ctypes.c_void_p(4096)), it.launch_at(torch + 40))
        fill = it.register(image(OTHER, "wrapper"), (torch + 50, names[0]), (torch, names[0]))
        print("registered again", it.launch_at(torch + 50), it.launch_at(torch))
        print("late", it.register(image(TORCH, "wrapper"), (other + 8, names[0])) and
              it.launch_at(other + 8))
        function = ctypes.c_void_p()
        it.front.hipGetFuncBySymbol(ctypes.byref(function), ctypes.c_void_p(torch + 3))
        print("by another handle", it.launch(function))
        print("came to the runtime", it.launched())
        print(pages.counts())
        print(pages.kernels(Kind.KERNEL), len(pages.kernels(Kind.COPY)))
        print(pages.refusal())
    """).splitlines()

    assert said[:-3] == [
        "mine 0 0",
        "elsewhere 801",
        "made at run time 801",
        "moved 0 0",
        "converted 0 801",
        "computed 801",
        "another library's fill 801",
        "tensile 801",
        "unknown 801 801",
        "registered again 801 801",
        "late 801",
        "by another handle 801",
        "came to the runtime 5",
    ]
    counts, kernels, refusal = said[-3:]
    assert counts == "Counts(kernels=2, copies=3, graphs=0, left_out=0, refused=12)"
    assert kernels.startswith("(('doubled', 2),) ")
    assert refusal.startswith("launched kernels that are not its own: doubled, doubled, ")


def test_a_library_launches_what_its_file_holds(run: Run) -> None:
    """What it registers from its file; not from memory, and not under its name what others hold."""
    said = run("""
        pages = own()
        it.filter(pages, str(PLACE / MINE))
        mine = image(MINE, "stands")
        sealed = ctypes.string_at(image(MINE, "sealed"), 128)
        copied = it.in_memory(sealed).value
        ctypes.memmove(image(MINE, "writable") + 64, b"changed", 7)
        wrapped = [image(MINE, "wrapper"), image(OTHER, "wrapper"), copied, image(MINE, "writable")]
        for number, where in enumerate(wrapped):
            it.register(where, (mine + number, f"kernel{number}"))
            print(it.launch_at(mine + number), end=" ")
        print(it.launch(it.function(it.module(image(MINE, "sealed")), "k")), end=" ")
        print(it.launch(it.function(it.module(copied), "k")), end=" ")
        binary = it.register(image(MINE, "wrapper"), (mine + 9, "gone"))
        print(it.launch_at(mine + 9), end=" ")
        it.front["__hipUnregisterFatBinary"](binary)
        print(it.launch_at(mine + 9))
        print(pages.refusal())
    """).splitlines()

    assert said[0].split() == ["0", "801", "801", "801", "0", "801", "0", "801"]
    assert said[1].startswith("launched kernels that are not its own: kernel1, kernel2, kernel3, k")


def test_every_way_to_launch_is_refused_or_left_out(run: Run) -> None:
    """Also through the runtime's own symbols, by C++ names, and by functions of the future."""
    said = run("""
        pages = own()
        it.filter(pages, str(PLACE / MINE))
        stands, other = image(MINE, "stands"), image(OTHER, "stands")
        it.register(image(MINE, "wrapper"), (stands, "mine"))
        it.register(image(OTHER, "wrapper"), (other, "foreign"))
        at = ctypes.c_void_p
        mine, foreign = at(stands), at(other)
        one, none, stream = Dim3(1, 1, 1), None, at()
        grid = (1,) * 6
        first = lambda f: (at * 16)(f.value)
        config = (at * 16)()
        node = lambda f: (at * 8)(none, none, none, f.value)
        typed = lambda f: (at * 32)(0, 0, none, none, none, f.value)  # type 0 is a kernel
        ways = {
            "hipLaunchByPtr": lambda c, f: c(f),
            **{
                f"{name}{kind}": lambda c, f: c(f, one, one, none, 0, stream)
                for name in ("hipLaunchKernel", "hipLaunchCooperativeKernel")
                for kind in ("", "_spt")
            },
            "hipExtLaunchKernel": lambda c, f: c(f, one, one, none, 0, stream, none, none, 0),
            "hipLaunchKernelExC": lambda c, f: c(config, f, none),
            "hipDrvLaunchKernelEx": lambda c, f: c(config, f, none, none),
            "hipLaunchCooperativeKernelMultiDevice": lambda c, f: c(first(f), 1, 0),
            "hipExtLaunchMultiKernelMultiDevice": lambda c, f: c(first(f), 1, 0),
            "hipModuleLaunchKernel": lambda c, f: c(f, *grid, 0, stream, none, none),
            "hipExtModuleLaunchKernel":
                lambda c, f: c(f, *grid, at(0), stream, none, none, none, none, 0),
            "hipHccModuleLaunchKernel":
                lambda c, f: c(f, *grid, at(0), stream, none, none, none, none),
            "hipModuleLaunchCooperativeKernel": lambda c, f: c(f, *grid, 0, stream, none),
            "hipModuleLaunchCooperativeKernelMultiDevice": lambda c, f: c(first(f), 1, 0),
            "hipGraphAddKernelNode": lambda c, f: c(none, none, none, at(0), node(f)),
            "hipGraphAddNode": lambda c, f: c(none, none, none, at(0), typed(f)),
            "hipGraphKernelNodeSetParams": lambda c, f: c(none, node(f)),
            "hipGraphNodeSetParams": lambda c, f: c(none, typed(f)),
            "hipGraphExecKernelNodeSetParams": lambda c, f: c(none, none, node(f)),
            "hipGraphExecNodeSetParams": lambda c, f: c(none, none, typed(f)),
        }
        launching = 0
        for library in (it.front, it.driver):
            for name, way in ways.items():
                before = it.launched()
                errors = [way(getattr(library, name), f) for f in (mine, foreign)]
                assert errors == [0, 801], (name, errors)
                launching += it.launched() - before
        print(len(ways), launching, pages.counts().refused)
        print(it.driver.hipLaunchKernelSomehow(mine), it.driver.hipFutureQuery(),
              it.driver._Z24hipExtModuleLaunchKernelPv(mine))
        pages.order(0)
        graph = it.module(b"a graph, for the double")
        before = it.launched()
        assert all(way(getattr(it.front, name), mine) == 0 for name, way in ways.items())
        for name in ("hipGraphLaunch", "hipGraphLaunch_spt"):
            assert getattr(it.front, name)(graph, stream) == 0
        print(it.launched() - before, pages.counts().left_out)
        it.driver.double_capture(1)
        assert it.launch_at(stands) == 0 and it.launched() == before + 1
        pages.order()
        it.driver.double_capture(0)
        assert it.front.hipGraphLaunch(graph, stream) == 0 and it.launched() == before + 2
    """).splitlines()

    assert said == ["21 30 42", "801 77 801", "0 17"]


def test_who_may_launch_anything_is_counted(run: Run) -> None:
    """A baseline may use what libraries have: tens of thousands of kernels, if need be."""
    said = run(f"""
        pages = LaunchPages(RunnerPolicy())
        it.filter(pages, str(PLACE / MINE))
        other = image(OTHER, "stands")
        it.register(image(OTHER, "wrapper"), (other, {SOFTMAX!r}))
        tensile = it.function(it.module(b"code of rocBLAS"), {TENSILE!r})
        print(it.launch_at(other), it.launch(tensile), it.driver.hipLaunchKernelSomehow(tensile))
        print(pages.counts(), pages.refusal())
        print([name for name, _ in pages.kernels(Kind.KERNEL)])
    """).splitlines()

    assert said == [
        "0 0 0",
        "Counts(kernels=2, copies=0, graphs=0, left_out=0, refused=0) ",
        repr([SOFTMAX[:100], TENSILE]),
    ]
