"""Triton modules compiled for a GPU that is not there: what is found, refused, left out."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import triton

from tests.testkit.cli import REPOSITORY

CASES = Path(__file__).with_name("ahead_cases.py")
SIGNATURE = {
    "inputs": [["x", "T", ["rows", "cols"]]],
    "outputs": [["y", "T", ["rows", "cols"]]],
    "scalars": [],
    "dims": ["rows", "cols"],
}
CONFIGS = [{"name": "f32", "dims": {"rows": 8, "cols": 64}, "dtype": "f32", "scalars": {}}]
HEAD = """\
import os, sys, time
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def wrong(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    # Above, a comment; below, shapes that do not fit.
    tl.store(y + at, tl.load(x + tl.arange(0, 2 * BLOCK)))


@triton.jit
def total(x, y, BLOCK: tl.constexpr):  # with a function of Triton's own inlined
    tl.store(y, tl.sum(tl.load(x + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def greedy(x, y):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    total = tl.zeros((64, 64), dtype=tl.float32)
    for step in range(0, 64):
        total = tl.dot(tl.load(x + at + step * 4096), tl.load(x + at + step * 8192), total)
    tl.store(y + at, total)


def copy(x, y, *, rows, cols):
"""
MODULES = {
    "good": "    kernel[(rows,)](x, y, BLOCK=64)\n    kernel[(rows,)](x, y, BLOCK=2048)",
    "same": "    kernel[(rows,)](x, y, BLOCK=64)\n    kernel[(rows,)](x, y, BLOCK=2048)",
    "sums": "    total[(rows,)](x, y, BLOCK=64)",
    "twice": "    kernel[(rows,)](x, y, BLOCK=64)\n    kernel[(1,)](x, y, BLOCK=64)",
    "wrong": "    kernel[(rows,)](x, y, BLOCK=64)\n    wrong[(rows,)](x, y, BLOCK=64)",
    "greedy": "    greedy[(rows,)](x, y, num_stages=4)",
    "data": "    kernel[(int(x.sum()),)](x, y, BLOCK=64)",
    "hangs": "    while True: print('again')",
    "floods": "    while True:\n        for n in range(3, 64):\n"
    "            try: os.write(n, b'x' * 4096)\n            except OSError: pass",
    "forks": "    kernel[(rows,)](x, y, BLOCK=64)\n    if os.fork() == 0: time.sleep(1e9)",
    "exits": "    os._exit(0)",
    "eats": "    whole = bytearray(1 << 40)",
    "looks": "    raise OSError(str(sorted(os.listdir('/') + os.listdir('/candidate'))))",
    "dates": "    raise OSError(os.stat(__file__).st_mtime_ns, 'ns')",
    "searches": "    tuned[(rows,)](x, y)",
}  # fmt: skip
TUNED = (
    "\ntuned = triton.autotune([triton.Config({}, num_stages=n) for n in (4, 1)], key=[])(greedy)\n"
)


def tools(directory: Path) -> Path:
    """The gate's tools as its sandbox has them."""
    rules, hip = REPOSITORY / "rules", REPOSITORY / "toolchains/hip"
    made = shutil.copytree(rules / "triton2triton/tools", directory / "tools")
    for part in ("base", "terms"):
        shutil.copytree(rules / "harness/tools" / part, made / part)
    for name in ("limits.py", "namespaces.py", "rootfs.py", "seccomp.py"):
        shutil.copy(REPOSITORY / "kabuild/sandbox" / name, made)
    for part in ("common", "cuda/driver", "rocm/driver"):
        shutil.copytree(hip / part, directory / "hip" / part)
    platforms = shutil.copytree(REPOSITORY / "toolchains/platforms", directory / "platforms")
    for name in ("cuda", "rocm"):
        shutil.copy(platforms / name / "tools" / f"{name}_triton.py", made)
    return made


def spec(platform: str, arch: str) -> str:
    return json.dumps(
        {
            "platform": platform,
            "arch": arch,
            "entry": "copy",
            "signature": SIGNATURE,
            "configs": CONFIGS,
        }
    )


def compiling() -> dict[str, str]:
    """The environment of a process that compiles. Other tests interpret kernels in this one."""
    return {k: v for k, v in os.environ.items() if not k.startswith("TRITON_")}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each module, compiled for gfx942."""
    return compiled(tmp_path_factory.mktemp("ahead"), spec("rocm", "gfx942"), *MODULES)


def compiled(directory: Path, ahead: str, *names: str) -> dict[str, Any]:
    """What comes of the modules of these names."""
    (directory / "ahead.json").write_text(ahead)
    paths = []
    for name in names:
        path = directory / f"{name}.py"
        head = HEAD.replace("\n\ndef copy", f"{TUNED}\n\ndef copy") if name == "searches" else HEAD
        path.write_text(head + MODULES[name] + "\n")
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, str(CASES), str(tools(directory)), str(directory / "ahead.json"), *paths],
        env=compiling(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def test_each_kernel_that_is_launched_is_compiled(found: dict[str, Any]) -> None:
    assert (found["good"]["error"], found["good"]["left_out"]) == ("", "")
    assert len(found["good"]["kernels"]) == 2
    assert len(found["twice"]["kernels"]) == 1
    for kernel in found["good"]["kernels"]:
        assert (kernel["name"], kernel["arch"], kernel["wave"]) == ("kernel", "gfx942", 64)
        assert 0 < kernel["registers"] <= 512
        assert kernel["code_bytes"] > 0


def test_a_kernel_that_does_not_compile_is_refused_at_its_line(found: dict[str, Any]) -> None:
    line = next(n for n, text in enumerate(HEAD.splitlines(), 1) if "2 * BLOCK" in text)

    assert found["wrong"]["line"] == line
    assert "128" in found["wrong"]["error"]


@pytest.fixture(scope="module")
def on_cuda(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of some modules, compiled for sm_90."""
    names = ("good", "same", "sums", "wrong", "data", "exits")
    return compiled(tmp_path_factory.mktemp("cuda"), spec("cuda", "sm_90"), *names)


def test_compiled_kernels_are_handed_on_as_any_machine_makes_them(on_cuda: dict[str, Any]) -> None:
    kernels = {p: base64.b64decode(d) for p, d in on_cuda["good"]["binaries"].items()}

    assert {Path(path).name for path in kernels} == {
        "kernel.json",
        "__grp__kernel.json",
        "kernel.cubin",
    }
    assert len(kernels) == 3 * 2  # of two specialisations
    packages = str(Path(triton.__file__).parents[1]).encode()
    for path, data in kernels.items():
        assert packages not in data
        # By its folder the launch filter knows a candidate's kernels. After the file's name come
        # the number of the folder and the time of the file, which ptxas writes into line tables.
        assert not path.endswith(".cubin") or b"/candidate\0\0kernel.py\0\1\0" in data
    assert on_cuda["same"]["binaries"] == on_cuda["good"]["binaries"]


def test_what_launches_kernels_is_told_by_their_parameters(on_cuda: dict[str, Any]) -> None:
    assert on_cuda["good"]["launchers"] == ["*,*,constexpr"]
    assert on_cuda["data"]["launchers"] == []


def test_functions_of_triton_have_the_same_name_on_any_machine(on_cuda: dict[str, Any]) -> None:
    files = {p: base64.b64decode(d) for p, d in on_cuda["sums"]["binaries"].items()}
    (cubin,) = (data for path, data in files.items() if path.endswith(".cubin"))

    assert b"/candidate\0/triton/language\0" in cubin
    packages = str(Path(triton.__file__).parents[1]).encode()
    assert all(packages not in data for data in files.values())


def test_kernels_of_rocm_are_not_handed_on(found: dict[str, Any]) -> None:
    assert len(found["good"]["kernels"]) == 2
    assert found["good"]["binaries"] == {}


def test_the_age_of_the_module_is_nothing_that_it_can_see(found: dict[str, Any]) -> None:
    assert found["dates"]["left_out"] == "without a GPU it raises OSError: [Errno 0] ns"


def test_kernels_are_handed_on_only_when_all_are_compiled(on_cuda: dict[str, Any]) -> None:
    for name in ("wrong", "data", "exits"):
        assert on_cuda[name]["binaries"] == {}


@pytest.mark.parametrize(
    ("name", "how", "cached"),
    [
        ("good", "handed", [True, True]),
        ("sums", "handed", [True]),
        ("good", "alone", [False, False]),
    ],
)
def test_a_runner_that_was_handed_its_kernels_compiles_none(
    on_cuda: dict[str, Any], tmp_path: Path, name: str, how: str, cached: list[bool]
) -> None:
    (tmp_path / "kernel.py").write_text(HEAD + MODULES[name] + "\n")
    (tmp_path / "kernels.json").write_text(json.dumps({"files": on_cuda[name]["binaries"]}))
    (tmp_path / "ahead.json").write_text(spec("cuda", "sm_90"))
    script = CASES.with_name("ahead_runner.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tools(tmp_path)), str(tmp_path), how],
        env=compiling(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == cached


def test_a_launch_beyond_the_shared_memory_is_refused_where_it_is(found: dict[str, Any]) -> None:
    line = len(HEAD.splitlines()) + 1

    assert found["greedy"]["line"] == line
    assert found["greedy"]["error"].startswith("out of resource: shared memory")
    assert "65536" in found["greedy"]["error"]


def test_of_a_search_what_fits_is_compiled(found: dict[str, Any]) -> None:
    assert (found["searches"]["error"], found["searches"]["left_out"]) == ("", "")
    assert [kernel["shared_bytes"] <= 65536 for kernel in found["searches"]["kernels"]] == [True]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("data", "without a GPU it raises "),
        ("hangs", "running it took longer than 2 s"),
        ("floods", "its report is too long"),
        ("exits", "running it ended early"),
        ("eats", "without a GPU it raises MemoryError"),
    ],
)
def test_what_cannot_run_without_a_gpu_is_left_out(
    found: dict[str, Any], name: str, said: str
) -> None:
    assert found[name]["error"] == ""
    assert said in found[name]["left_out"]


def test_processes_that_it_leaves_behind_do_not_hold_up_the_report(found: dict[str, Any]) -> None:
    assert (found["forks"]["error"], found["forks"]["left_out"]) == ("", "")
    assert len(found["forks"]["kernels"]) == 1


def test_it_sees_its_own_file_and_no_task(found: dict[str, Any]) -> None:
    assert "'kernel.py'" in found["looks"]["left_out"]
    assert "good.py" not in found["looks"]["left_out"]
    assert "'exec'" not in found["looks"]["left_out"]


def forged(**changes: object) -> bytes:
    """A report with something else than a report has."""
    report = {"kernels": [], "error": "", "line": 0, "left_out": "", "binaries": {}}
    return json.dumps({**report, "launchers": [], **changes}).encode()


FOLDER = "A" * 52
FORGED = [
    b"",
    b"not JSON",
    b"[]",
    b"{}",
    forged(kernels=1),
    forged(kernels="abc"),
    forged(kernels=[["name", 1]]),
    forged(kernels=[{"registers": 1.5}]),
    forged(kernels=[{"name": {}}]),
    forged(error=1),
    forged(line="1"),
    forged(binaries=[]),
    forged(binaries={"../up.json": ""}),
    forged(binaries={f"{FOLDER}/../../up.json": ""}),
    forged(binaries={f"{FOLDER}/k.json": "no base64"}),
    forged(binaries={"/etc/k.json": ""}),
    forged(binaries={f"{FOLDER}/k{n}.json": "" for n in range((1 << 14) + 1)}),
    forged(launchers=1),
    forged(launchers="*,i32"),
    forged(launchers=[1]),
    forged(launchers=["* i32"]),
    forged(launchers=["*," * 1001]),
    forged(launchers=["*"] * 65),
    b"[" * 100_000,
    b'{"kernels": [{"registers": ' + b"9" * 10_000 + b"}]}",
]


def test_a_forged_report_that_is_none_says_nothing(tmp_path: Path) -> None:
    understand = "import ahead; print(*(ahead._understood(r, '') for r in eval(input())))"
    done = subprocess.run(
        [sys.executable, "-c", understand],
        input=repr([*FORGED, forged()]),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tools(tmp_path))},
        check=True,
    )

    left_out = "left_out='running it ended early'"
    nothing = f"Compiled(kernels=(), error='', line=0, {left_out}, binaries={{}}, launchers=())"
    understood = nothing.replace(left_out, "left_out=''")
    assert done.stdout.split() == " ".join([*[nothing] * len(FORGED), understood]).split()


def test_an_architecture_without_figures_is_no_fault_of_the_module(tmp_path: Path) -> None:
    text = HEAD.replace("import os, sys, time\n", "") + MODULES["good"] + "\n"
    (tmp_path / "good.py").write_text(text)
    (tmp_path / "ahead.json").write_text(spec("rocm", "gfx803"))
    (tmp_path / "signature.json").write_text(json.dumps(SIGNATURE))
    done = subprocess.run(
        [
            *(sys.executable, str(tools(tmp_path) / "compile.py")),
            *(f"--source={tmp_path / 'good.py'}", "--entry=copy", f"--out={tmp_path}"),
            *(f"--signature={tmp_path / 'signature.json'}", f"--ahead={tmp_path / 'ahead.json'}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 3, done.stdout + done.stderr
    assert "cannot compile Triton for 'gfx803', only for gfx906, " in done.stderr
    assert not (tmp_path / "verdict.json").exists()
