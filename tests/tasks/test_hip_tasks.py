"""Every HIP starter's baseline and expert against the oracle in float64, on the cpu platform."""

import importlib.util
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tasks.declared import starters
from tests.tasks.hip_kernels import DTYPES, NOT_SUPPORTED, SUCCESS, Task, call
from tests.testkit.cli import CliWorkspace
from tests.testkit.compilations import Completed, compile_once
from tests.testkit.runtime import judged_store, load_built

HIP = Path(__file__).parents[2] / "toolchains" / "hip" / "driver" / "compile_hip.py"
DRIVER = [sys.executable, str(HIP), "cpu"]
ZIG = importlib.util.find_spec("ziglang")
assert ZIG is not None
assert ZIG.origin is not None
COMPILER = f"--compiler=zig:{Path(ZIG.origin).parent}"
WAVES = [64, 32]
TASKS = [Task.load(task.family, task.name) for task in starters() if task.kernel.suffix == ".hip"]
BASELINES = [task for task in TASKS if task.family == "hip2hip"]
PORTS = [task for task in TASKS if task.family == "torch2hip"]
TASK = {task.name: task for task in TASKS}

# Size 1, one past a tile, primes, and every branch on size that an expert takes. Another starter
# has the sizes of its configs for cpu.
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "softmax": [
        (1, 1), (3, 7), (9, 33), (5, 257), (4, 509), (17, 1000), (2, 1025), (3, 4104), (1, 8200),
        (1, 16385), (1, 50257),
    ],
    "layernorm": [
        (1, 1), (3, 7), (9, 33), (5, 257), (4, 509), (17, 1000), (2, 1025), (3, 4104), (1, 8200),
        (1, 16385), (1, 50257),
    ],
    "gemm": [
        (1, 1, 1), (17, 15, 33), (64, 64, 64), (65, 63, 67), (1, 300, 777), (4, 4, 4100),
        (130, 4, 520), (1411, 1537, 5),
    ],
    "scan": [(1,), (31,), (33,), (255,), (513,), (4097,), (8192,), (100003,)],
    "gelu": [(1, 1), (1, 7), (3, 5), (1, 4097), (16, 512), (61, 509)],
    "rope": [(1, 1, 1, 1), (3, 5, 7, 3), (2, 4, 33, 64), (1, 9, 300, 20), (2, 1, 17, 128)],
    "topk": [
        (1, 64, 64), (37, 64, 16), (9, 505, 16), (9, 513, 16), (2, 2049, 33), (1, 8193, 64),
        (2, 8230, 64), (1, 50257, 50), (1, 262144, 64),
    ],
    "attention_decode": [
        (1, 1, 1, 1), (1, 2, 7, 3), (2, 3, 33, 8), (1, 2, 129, 64), (1, 1, 1000, 80),
        (1, 2, 300, 128), (2, 1, 257, 256), (1, 1, 4099, 16),
    ],
}  # fmt: skip

# A mistake that somebody could make, and a shape that shows it.
MUTATIONS = [
    ("softmax", "kernel", " - largest", "", (9, 33)),
    ("layernorm", "kernel", "block_sum(squares, scratch) / (float)cols", "squares", (3, 300)),
    ("gemm", "kernel", "i < kTile;", "i < kTile - 1;", (17, 15, 33)),
    ("scan", "kernel", "threadIdx.x >= distance", "threadIdx.x > distance", (513,)),
    ("gelu", "expert", "&& last < n)", "&& last < n - 1)", (61, 509)),
    ("rope", "expert", "- b * s.v[i]", "+ b * s.v[i]", (2, 4, 33, 64)),
    ("topk", "expert", "candidates[j] > own", "candidates[j] >= own", (2, 2049, 33)),
    ("attention_decode", "expert", "weight *= shrink;", "", (1, 1, 1000, 80)),
]


@dataclass(frozen=True)
class Compiler:
    """Compiles kernels with the toolchain of the cpu platform; each once a session."""

    directory: Path

    def compile(self, source: Path, name: str, wave: int) -> Path:
        """Return the library of `source`."""
        library = self.directory / f"{name}.{wave}.so"
        if not library.exists():
            command = [*DRIVER, "kernel", str(source), "-o", str(library), COMPILER]
            require(compile_once([*command, "--wave", str(wave)], source, library))
        return library


def require(done: Completed) -> None:
    """Of the compiler driver; its diagnostics become the test's."""
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    """The compiler, with all kernels of the tasks compiled on two threads.

    What the program compiles, too, comes from its compile gates, for all test runs.
    """
    directory = tmp_path_factory.mktemp("hip_tasks")
    load_built()
    compiler = Compiler(directory)
    _have_built(CliWorkspace.make(directory, judged_store()), directory)
    jobs = [(task.kernel, f"{task.name}.kernel", WAVES[0]) for task in TASKS]
    jobs += [(task.expert, f"{task.name}.expert", WAVES[1]) for task in TASKS]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: compiler.compile(*job), jobs))
    return compiler


def _have_built(workspace: CliWorkspace, directory: Path) -> None:
    """Put the libraries that the program compiles where ``Compiler`` looks for them."""
    packages = {task.name: f"tasks/{task.family}/{task.name}" for task in TASKS}
    for package in packages.values():
        workspace.adopt(package)
    targets = {f"{task.name}.expert": f"{task.name}.compile" for task in TASKS}
    targets |= {f"{task.name}.kernel": f"{task.name}.baseline.compile" for task in BASELINES}
    labels = {own: f"{packages[own.partition('.')[0]]}:{name}" for own, name in targets.items()}
    built = workspace.run("build", *(f"//{label}" for label in labels.values()), "--agent=expert")
    assert built.code == 0, built.err
    for own, label in labels.items():
        made = workspace.root / "out" / label.replace(":", "/") / "kernel.so"
        shutil.copyfile(made, directory / f"{own}.{WAVES[0]}.so")


def dims_of(task: Task, shape: tuple[int, ...]) -> dict[str, int]:
    """Name the sizes of a shape."""
    return dict(zip(task.declaration["dims"], shape, strict=True))


def shapes_of(task: Task) -> list[tuple[int, ...]]:
    """The shapes with which a task's kernels are called."""
    names, configs = task.declaration["dims"], task.declaration["platform_configs"]["cpu"]
    own = dict.fromkeys(tuple(config[name] for name in names) for config in configs)
    return SHAPES.get(task.name, list(own))


def mismatches(library: Path, task: Task) -> list[str]:
    """Call `library` for every shape and dtype, aligned and not; say what is wrong."""
    wrong = []
    for number, shape in enumerate(shapes_of(task)):
        for dtype in task.declaration["dtypes"]:
            for shift in (0, 1 + number % 3):
                dims = dims_of(task, shape)
                inputs = task.inputs(dims, dtype, seed=number)
                called = call(library, task, dtype, dims, inputs, shift)
                assert called.status == SUCCESS
                difference = task.mismatch(inputs, called.outputs, dims, dtype)
                if difference is not None:
                    wrong.append(f"{dtype} {dims} shifted by {shift}: {difference}")
    return wrong


@pytest.mark.parametrize("task", BASELINES, ids=lambda task: task.name)
def test_baseline_agrees_with_the_oracle(compiler: Compiler, task: Task) -> None:
    """The given kernel is right over the whole shape space, whatever the alignment."""
    library = compiler.compile(task.kernel, f"{task.name}.kernel", WAVES[0])

    assert mismatches(library, task) == []


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_expert_agrees_with_the_oracle(compiler: Compiler, task: Task, wave: int) -> None:
    """The expert is as right as the baseline, with waves of 32 and of 64."""
    library = compiler.compile(task.expert, f"{task.name}.expert", wave)

    assert mismatches(library, task) == []


@pytest.mark.parametrize(
    ("name", "which", "old", "new", "shape"), MUTATIONS, ids=[m[0] + "." + m[1] for m in MUTATIONS]
)
def test_mutated_kernel_is_caught(
    compiler: Compiler, name: str, which: str, old: str, new: str, shape: tuple[int, ...]
) -> None:
    """The same comparison rejects a plausible mistake."""
    task = TASK[name]
    text = getattr(task, which).read_text()
    assert old in text
    source = compiler.directory / f"{name}.{which}.mutated.hip"
    source.write_text(text.replace(old, new))
    library = compiler.compile(source, source.stem, WAVES[0])
    dims, dtype = dims_of(task, shape), task.declaration["dtypes"][0]
    inputs = task.inputs(dims, dtype)

    called = call(library, task, dtype, dims, inputs)

    assert called.status == SUCCESS
    assert task.mismatch(inputs, called.outputs, dims, dtype) is not None


@pytest.mark.parametrize("task", PORTS, ids=lambda task: task.name)
def test_skeleton_compiles_and_declines(compiler: Compiler, task: Task) -> None:
    """What an agent is given has the right entries, and none of them claims to work."""
    library = compiler.compile(task.kernel, f"{task.name}.kernel", WAVES[0])
    dims = dims_of(task, shapes_of(task)[0])

    for dtype in task.declaration["dtypes"]:
        called = call(library, task, dtype, dims, task.inputs(dims, dtype))
        assert called.status == NOT_SUPPORTED


@pytest.mark.parametrize("task", PORTS, ids=lambda task: task.name)
def test_pytorch_baseline_agrees_with_the_oracle(task: Task) -> None:
    """What the expert is measured against computes the same thing."""
    for shape in shapes_of(task):
        dims = dims_of(task, shape)
        inputs = task.inputs(dims, "f32")
        outputs = task.reference.baseline(**inputs, **task.scalars, **dims)
        assert task.mismatch(inputs, outputs, dims, "f32") is None


@pytest.mark.parametrize(("name", "shape"), [("scan", (1_500_001,)), ("topk", (3, 40000, 64))])
def test_expert_is_bitwise_reproducible(
    compiler: Compiler, name: str, shape: tuple[int, ...]
) -> None:
    """Blocks that finish in another order change no bit, ties included."""
    task = TASK[name]
    library = compiler.compile(task.expert, f"{name}.expert", WAVES[0])
    dims = dims_of(task, shape)
    inputs = {"x": task.inputs(dims, "f16")["x"].float()}

    first, *others = [call(library, task, "f32", dims, inputs).outputs for _ in range(3)]

    for other in others:
        assert all(torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", ["softmax", "layernorm"])
def test_expert_keeps_digits_of_hard_rows(compiler: Compiler, name: str) -> None:
    """Large offsets and infinities, short rows to long."""
    task = TASK[name]
    library = compiler.compile(task.expert, f"{name}.expert", WAVES[0])
    for cols in (5, 300, 2000, 40001):
        dims = {"rows": 4, "cols": cols}
        inputs = task.inputs(dims, "f32")
        inputs["x"] = torch.randn(4, cols, generator=torch.Generator().manual_seed(cols)) + 1e4
        if name == "softmax":
            inputs["x"][1], inputs["x"][2, 1:], inputs["x"][3, -1] = (
                -torch.inf, -torch.inf, torch.nan,
            )  # fmt: skip
        outputs = call(library, task, "f32", dims, inputs).outputs["y"].double()
        expected = task.expected(inputs, dims)["y"]
        assert torch.allclose(outputs, expected, rtol=1e-6, atol=1e-6, equal_nan=True)


def damaged(what: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Inputs, outputs and oracle of topk, with one mistake in the outputs."""
    task = TASK["topk"]
    dims = {"rows": 3, "cols": 100, "k": 8}
    inputs = task.inputs(dims, "f16")
    expected = task.expected(inputs, dims)
    values, indices = expected["values"].to(DTYPES["f16"]), expected["indices"].clone()
    if what == "value":
        values[1, 3] += 1
    elif what == "order":
        values, indices = values.flip(1), indices.flip(1)
    elif what == "range":
        indices[2, 0] = 100
    elif what == "column":
        indices[0, 0] = inputs["x"][0].argmin()
    elif what == "twice":
        inputs["x"][1, :20] = values[1, :] = expected["values"][1, :] = 50.0
        indices[1] = 7
    elif what == "dtype":
        indices = indices.int()
    return inputs, {"values": values, "indices": indices}, expected


def test_topk_check_accepts_any_choice_among_ties() -> None:
    """Equal elements are interchangeable."""
    inputs, outputs, expected = damaged("nothing")
    inputs["x"][1, :20] = outputs["values"][1] = expected["values"][1] = 50.0
    outputs["indices"][1] = torch.arange(12, 20)

    assert TASK["topk"].reference.check(inputs, outputs, expected) is None


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("value", "values[1, 3]: expected"),
        ("order", "values[0, 0]: expected"),
        ("range", "indices[2, 0]: 100 is not a column of 100"),
        ("column", "indices[0, 0]: column"),
        ("twice", "indices of row 1: column 7 occurs twice"),
        ("dtype", "indices: expected torch.int64[3, 8], got torch.int32[3, 8]"),
    ],
)
def test_topk_check_names_the_mistake(what: str, said: str) -> None:
    """The structured oracle rejects each kind of wrong answer, and says which."""
    complaint = TASK["topk"].reference.check(*damaged(what))

    assert complaint is not None
    assert said in complaint
