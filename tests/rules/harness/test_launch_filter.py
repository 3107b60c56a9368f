"""The launch filter before a driver that has every name and launches nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testkit import launch_driver
from tests.testkit.forks import Forks
from tests.testkit.launch_driver import images
from tests.testkit.launch_driver.programs import Run, filtered_forks, runs_in

ROOT = Path(__file__).parents[3]
# Kernels of PyTorch 2.11, by their names in its library, and names that only look like them.
FILL = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEvi"
    "T0_T1_"
)
COPY = (
    "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastIZZZNS0_"
    "23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE5_clEvEUlfE_EEvS4_"
    "RKT_EUliE_EEviT1_"
)
CONVERSIONS = (
    COPY.replace("23direct_copy", "25bfloat16_copy"),
    COPY.replace("22gpu_kernel_impl_nocast", "15gpu_kernel_impl"),
)
SOFTMAX = "_ZN2at6native12_GLOBAL__N_119cunn_SoftMaxForwardILi4EfffEEvPT2_PKT0_i"
SUM_OF_FILLS = FILL.replace("NS0_11FillFunctorIfEE", "NS0_9SumFunctorINS0_11FillFunctorIfEEEE")
OWN_LOOP = FILL.replace("29vectorized_elementwise_kernel", "13reduce_kernel")
BEHIND = f"_Z6matmul{COPY}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filter before the double; two modules of Triton, compiled; two libraries with images."""
    folder = tmp_path_factory.mktemp("front")
    launch_driver.CUDA.build_front(folder)
    images.compile_modules("cuda", folder / "candidate", folder / "elsewhere")
    for name in ("candidate/kernel.so", "elsewhere/libother.so", "torch/lib/libtorch_cuda.so"):
        images.build_library(folder / name)
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
        import os, sys
        from tests.testkit.launch_driver.process import NOT_PERMITTED, Process, symbol_of
        it = Process(PLACE / "libcuda.so.1")
        """,
    )


def test_every_function_of_the_driver_is_there(run: Run) -> None:
    """Those that load and launch are the filter's, and all others the driver's, whatever it has."""
    said = run("""
        from tests.testkit.launch_driver import names_of_cuda as names
        where = {}
        for name in (*names(), "cuFutureQuery"):
            address = ctypes.cast(getattr(it.front, name), ctypes.c_void_p).value
            where.setdefault(symbol_of(address), []).append(name)
        for library, found in where.items():
            print(library, *found)
    """)

    ours, theirs = (line.split() for line in sorted(said.splitlines()))

    assert ours[0] == "libcuda.so.1"
    assert theirs[0] == "libkabuild-driver.so"
    assert len(theirs) > 500
    assert "cuFutureQuery" in theirs
    assert [name for name in theirs if re.match("cuLaunch|cuGraph.*(Launch|Kernel)", name)] == [
        "cuGraphKernelNodeCopyAttributes",
        "cuGraphKernelNodeGetAttribute",
        "cuGraphKernelNodeGetParams",
        "cuGraphKernelNodeGetParams_v2",
        "cuGraphKernelNodeSetAttribute",
        "cuLaunchHostFunc",
        "cuLaunchHostFunc_ptsz",
    ]


def test_who_asks_for_addresses_gets_the_filters(run: Run) -> None:
    """In every version of the question and the functions; new ones that launch are refused."""
    said = run("""
        it.filter(own(), str(PLACE / "candidate/kernel.py"))
        def ask(symbol, version, flags=0, question="cuGetProcAddress_v2"):
            found, status = ctypes.c_void_p(), ctypes.c_int()
            arguments = [symbol.encode(), ctypes.byref(found), version, ctypes.c_ulonglong(flags)]
            if question.endswith("v2"):
                arguments.append(ctypes.byref(status))
            assert getattr(it.front, question)(*arguments) == 0
            return found.value
        def name(address):
            at = lambda n: ctypes.cast(getattr(it.front, n), ctypes.c_void_p).value
            return next((n for n in names() if at(n) == address), symbol_of(address))
        from tests.testkit.launch_driver import names_of_cuda as names
        for question in ("cuGetProcAddress", "cuGetProcAddress_v2"):
            print(*(name(ask(s, v, f, question)) for s, v, f in [
                ("cuLaunchKernel", 4000, 0), ("cuLaunchKernel", 7000, 2),
                ("cuLaunchKernelEx", 11060, 2), ("cuLaunchCooperativeKernel", 9000, 0),
                ("cuGraphLaunch", 10000, 2), ("cuModuleLoadData", 2000, 0),
                ("cuLibraryGetKernel", 12000, 0), ("cuGetProcAddress", 11030, 0),
                ("cuMemAlloc", 3020, 0)]))
        for symbol in ("cuLaunchKernelSomehow", "cuGraphAddNode_v9"):
            print(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ask(symbol, 14000))(1))
        print(it.launched())
    """)

    first, second, *refused = said.splitlines()

    assert first.split() == [
        *("cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx_ptsz"),
        *("cuLaunchCooperativeKernel", "cuGraphLaunch_ptsz", "cuModuleLoadData"),
        *("cuLibraryGetKernel", "cuGetProcAddress", "cuMemAlloc"),
    ]
    assert second == first
    assert refused == ["800", "800", "0"]


def test_only_kernels_of_the_candidates_module_are_launched(run: Run) -> None:
    """The compiler's line table names the module. PyTorch may copy and fill."""
    said = run(f"""
        pages = own()
        it.filter(pages, str(PLACE / "candidate/kernel.py"))
        torch = it.library(image("torch/lib/libtorch_cuda.so", "wrapper"))
        other = it.library(image("elsewhere/libother.so", "sealed"))
        mine = it.function(it.module(code("candidate")), "doubled")
        print("mine", it.launch(mine), it.launch(mine))
        print("elsewhere", it.launch(it.function(it.module(code("elsewhere")), "doubled")))
        made = code("candidate").replace(b".debug_line", b".other_line")
        print("made at run time", it.launch(it.function(it.module(made), "doubled")))
        for name in {[FILL, COPY]!r}:
            print("copy", it.launch(it.kernel(torch, name), blocks=1000))
        for name in {CONVERSIONS!r}:
            print("scalar", it.launch(it.kernel(torch, name)))
            print("tensor", it.launch(it.kernel(torch, name), blocks=2))
        for name in {[SOFTMAX, SUM_OF_FILLS, OWN_LOOP, BEHIND]!r}:
            print("not a copy", it.launch(it.kernel(torch, name)))
        print("another library's fill", it.launch(it.kernel(other, {FILL!r})))
        print("unknown", it.launch(it.function(ctypes.c_void_p(0), "nobody's")))
        function, kernel = ctypes.c_void_p(), it.kernel(torch, {SOFTMAX!r})
        assert it.front.cuKernelGetFunction(ctypes.byref(function), kernel) == 0
        print("by another handle", it.launch(function))
        print("came to the driver", it.launched())
        print(pages.counts())
        print(pages.kernels(Kind.KERNEL), len(pages.kernels(Kind.COPY)))
        print(pages.refusal())
    """)

    assert said.splitlines()[:-3] == [
        "mine 0 0",
        "elsewhere 800",
        "made at run time 800",
        *["copy 0"] * 2,
        *["scalar 0", "tensor 800"] * 2,
        *["not a copy 800"] * 4,
        "another library's fill 800",
        "unknown 800",
        "by another handle 800",
        "came to the driver 6",
    ]
    counts, kernels, refusal = said.splitlines()[-3:]
    assert counts == "Counts(kernels=2, copies=4, graphs=0, left_out=0, refused=11)"
    assert kernels == "(('doubled', 2),) 4"
    assert refusal.startswith("launched kernels that are not its own: doubled, doubled, ")
    assert refusal.endswith("and 7 more")


def test_every_way_to_launch_is_refused(run: Run) -> None:
    """Also through the driver's own symbols, which nobody else has to forward."""
    said = run("""
        pages = own()
        it.filter(pages, str(PLACE / "candidate/kernel.py"))
        mine = it.function(it.module(code("candidate")), "doubled")
        foreign = it.function(it.module(code("elsewhere")), "doubled")
        grid = (1,) * 6
        first = lambda f: (ctypes.c_void_p * 9)(f.value)
        second = lambda f: (ctypes.c_void_p * 9)(None, *(0,) * 6, f.value)
        typed = lambda f: (ctypes.c_void_p * 32)(0, 0, f.value)  # type 0 is a kernel
        stream, none = ctypes.c_void_p(), None
        ways = {
            "cuLaunch": lambda c, f: c(f),
            "cuLaunchGrid": lambda c, f: c(f, 1, 1),
            "cuLaunchGridAsync": lambda c, f: c(f, 1, 1, stream),
            "cuLaunchKernel": lambda c, f: c(f, *grid, 0, stream, none, none),
            "cuLaunchKernel_ptsz": lambda c, f: c(f, *grid, 0, stream, none, none),
            "cuLaunchKernelEx": lambda c, f: c(first(f), f, none, none),
            "cuLaunchKernelEx_ptsz": lambda c, f: c(first(f), f, none, none),
            "cuLaunchCooperativeKernel": lambda c, f: c(f, *grid, 0, stream, none),
            "cuLaunchCooperativeKernel_ptsz": lambda c, f: c(f, *grid, 0, stream, none),
            "cuLaunchCooperativeKernelMultiDevice": lambda c, f: c(first(f), 1, 0),
            "cuGraphAddKernelNode": lambda c, f: c(none, none, none, 0, first(f)),
            "cuGraphAddKernelNode_v2": lambda c, f: c(none, none, none, 0, second(f)),
            "cuGraphAddNode": lambda c, f: c(none, none, none, 0, typed(f)),
            "cuGraphAddNode_v2": lambda c, f: c(none, none, none, none, 0, typed(f)),
            "cuGraphKernelNodeSetParams": lambda c, f: c(none, first(f)),
            "cuGraphKernelNodeSetParams_v2": lambda c, f: c(none, second(f)),
            "cuGraphNodeSetParams": lambda c, f: c(none, typed(f)),
            "cuGraphExecKernelNodeSetParams": lambda c, f: c(none, none, first(f)),
            "cuGraphExecKernelNodeSetParams_v2": lambda c, f: c(none, none, second(f)),
            "cuGraphExecNodeSetParams": lambda c, f: c(none, none, typed(f)),
        }
        for library in (it.front, it.driver):
            for name, way in ways.items():
                before = it.launched()
                errors = [way(getattr(library, name), f) for f in (mine, foreign)]
                assert errors == [0, NOT_PERMITTED], (name, errors)
                assert it.launched() - before <= 1
        it.driver.cuLaunchKernelSomehow.restype = ctypes.c_int
        print(it.driver.cuLaunchKernelSomehow(mine), it.driver.cuFutureQuery())
        print(len(ways), pages.counts().refused)
    """)

    assert said.split() == ["800", "77", "20", "40"]


def test_launches_are_left_out_when_the_judge_says_so(run: Run) -> None:
    """From a launch on, until it says otherwise; what is recorded is left out when it is run."""
    said = run(f"""
        pages = LaunchPages(RunnerPolicy(own_kernels=True, launches=False))
        it.filter(pages, str(PLACE / "candidate/kernel.py"))
        mine = it.function(it.module(code("candidate")), "doubled")
        copy = it.kernel(it.library(image("torch/lib/libtorch_cuda.so", "sealed")), {FILL!r})
        graph = it.module(b"a graph, for the double")
        def launch(times=3):
            errors = {{it.launch(mine) for _ in range(times)}} | {{it.launch(copy)}}
            print(*errors, it.launched())
        launch()
        pages.order(2)
        launch()
        pages.order()
        launch()
        print(it.front.cuGraphLaunch(graph, None), it.launched())
        pages.order(0)
        it.driver.double_capture(1)
        launch()
        it.driver.double_capture(0)
        print(it.front.cuGraphLaunch(graph, None), it.launched())
        print(pages.counts())
    """)

    assert said.splitlines() == [
        "0 1",  # the copy alone
        "0 4",
        "0 8",
        "0 9",
        "0 13",
        "0 13",
        "Counts(kernels=5, copies=4, graphs=1, left_out=8, refused=0)",
    ]


def test_handles_that_the_driver_gives_again_are_others(run: Run) -> None:
    """A module that is gone takes its functions with it."""
    said = run("""
        it.filter(own(), str(PLACE / "candidate/kernel.py"))
        module = it.module(code("candidate"))
        mine = it.function(module, "doubled")
        print(it.launch(mine))
        it.front.cuModuleUnload(module)
        print(it.launch(mine))
    """)

    assert said.split() == ["0", "800"]


def test_who_may_launch_anything_is_counted(run: Run) -> None:
    """A baseline may use what libraries have."""
    said = run(f"""
        pages = LaunchPages(RunnerPolicy())
        it.filter(pages, str(PLACE / "candidate/kernel.py"))
        torch = it.library(image("torch/lib/libtorch_cuda.so", "sealed"))
        print(it.launch(it.kernel(torch, {SOFTMAX!r})), it.launch(it.kernel(torch, {FILL!r})))
        print(it.driver.cuLaunchKernelSomehow(it.kernel(torch, "new")))
        print(pages.counts(), pages.counts().launches, pages.refusal())
    """)

    assert said.splitlines() == [
        "0 0",
        "0",
        "Counts(kernels=1, copies=1, graphs=0, left_out=0, refused=0) 2 ",
    ]


def test_a_library_launches_what_its_file_holds(run: Run) -> None:
    """Not what it has written into its own memory, and not what others hold."""
    said = run("""
        it.filter(own(), str(PLACE / "candidate/kernel.so"))
        for library in ("candidate/kernel.so", "elsewhere/libother.so"):
            for name in ("sealed", "wrapper", "writable"):
                print(it.launch(it.kernel(it.library(image(library, name)), "k")), end=" ")
        address = image("candidate/kernel.so", "writable")
        ctypes.memmove(address + 16, b"changed", 7)
        print(it.launch(it.kernel(it.library(address), "k")), end=" ")
        sealed = ctypes.string_at(image("candidate/kernel.so", "sealed"), 80)
        copied = ctypes.create_string_buffer(sealed)
        print(it.launch(it.kernel(it.library(ctypes.addressof(copied)), "k")))
        print(it.launch(it.function(it.module(code("candidate")), "doubled")))
    """)

    assert said.split() == [*["0"] * 3, *["800"] * 3, "800", "800", "800"]


def test_the_record_is_read_with_distrust(run: Run) -> None:
    """A candidate that writes it can only accuse itself."""
    said = run("""
        import struct
        pages = own()
        try:
            pages.check_in_force()
        except Exception as error:
            print(error)
        pages._record[:] = b"\\xff" * len(pages._record)
        print(len(pages.refusal()), pages.kernels(Kind.COPY))
    """)

    assert said.splitlines()[0] == "a runner has started without its launch filter"
    assert int(said.splitlines()[1].split()[0]) < 1000


def test_the_harness_launches_its_own(run: Run) -> None:
    """What the judge's orders have the text of; it is not counted, and never left out."""
    said = run("""
        import runners.launch_pages
        text = PLACE / "harness.ptx"
        text.write_text("// the judge's")
        runners.launch_pages._OWN_KERNELS = text
        pages = LaunchPages(RunnerPolicy(own_kernels=True, launches=False))
        it.filter(pages, str(PLACE / "candidate/kernel.py"))
        blocker = it.function(it.module(text.read_bytes() + b"\\0"), "blocker")
        other = it.function(it.module(text.read_bytes() + b" not\\0"), "blocker")
        print(it.launch(blocker), it.launched(), pages.counts().launches, it.launch(other))
    """)

    assert said.split() == ["0", "1", "0", "800"]
