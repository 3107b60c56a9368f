"""Every Triton starter's baseline and expert against the oracle in float64, on the cpu platform."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls

import importlib.util
import json
import tomllib
from pathlib import Path

import compile as gate
import pytest
import torch
from triton_cpu import interpreter as triton_cpu

from tests.tasks.declared import starters

triton_cpu.install()

FAMILY = Path(__file__).parents[2] / "tasks" / "triton2triton"
STARTERS = {task.name: task for task in starters() if task.family == FAMILY.name}
NAMES = list(STARTERS)
VERSIONS = ["baseline", "expert"]
DTYPES = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
}  # fmt: skip
TOLERANCE = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}
SHAPES = {
    "rmsnorm": [
        {"rows": 1, "cols": 1}, {"rows": 3, "cols": 7}, {"rows": 2, "cols": 1025},
        {"rows": 65, "cols": 64}, {"rows": 1, "cols": 32769},
    ],
    "swiglu": [
        {"rows": 1, "cols": 1}, {"rows": 3, "cols": 7}, {"rows": 2, "cols": 1025},
        {"rows": 67, "cols": 32}, {"rows": 1, "cols": 3001},
    ],
    "cross_entropy": [
        {"rows": 1, "vocab": 1}, {"rows": 3, "vocab": 7}, {"rows": 2, "vocab": 1025},
        {"rows": 70, "vocab": 32}, {"rows": 3, "vocab": 12289}, {"rows": 1, "vocab": 40000},
    ],
    "matmul": [
        {"m": 1, "n": 1, "k": 1}, {"m": 1, "n": 67, "k": 129}, {"m": 17, "n": 1, "k": 31},
        {"m": 65, "n": 33, "k": 128}, {"m": 128, "n": 130, "k": 64}, {"m": 1500, "n": 900, "k": 3},
    ],
}  # fmt: skip
MUTATIONS = [
    ("rmsnorm", "tl.rsqrt(", "tl.sqrt("),
    ("rmsnorm", "col < cols, other=0.0).to", "col < cols - 1, other=0.0).to"),
    ("rmsnorm", "factor * gain, mask=inside", "factor * gain"),
    ("swiglu", "tl.exp(-gate)", "tl.exp(gate)"),
    ("swiglu", "(row * 2 + 1) * cols", "row * 2 * cols"),
    ("cross_entropy", "peak + tl.log", "tl.log"),
    ("cross_entropy", "value - peak)", "value)"),
    ("cross_entropy", "kept, result, 0.0", "True, result, 0.0"),
    ("matmul", "total += tl.dot", "total = tl.dot"),
    ("matmul", "range(0, k, BLOCK_K)", "range(0, k - 1, BLOCK_K)"),
    ("matmul", "a_inside, other=0.0", "(row < m)[:, None], other=0.0"),
]


def module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def declaration(name):
    (task,) = tomllib.loads((FAMILY / name / "BUILD.toml").read_text())["triton2triton"]
    return task


def source(name, version):
    folder = FAMILY / name
    return (folder if version == "baseline" else folder / "solutions" / "expert") / f"{name}.py"


def size_of(expression, dims):
    return int(eval(expression, {"__builtins__": {}}, dict(dims)))


def allocate(declared, config):
    kind, _, shape = declared.rstrip("]").partition("[")
    dims = {key: value for key, value in config.items() if isinstance(value, int)}
    sizes = [size_of(part, dims) for part in shape.split(",")]
    dtype = config["dtype"] if kind == "T" else DTYPES[kind]
    return torch.full(sizes, float("nan")).to(dtype)


def worst_error(name, path, dims, dtype, change=lambda drawn: drawn):
    """Run a module's kernel once; give the largest error relative to the oracle's spread."""
    task = declaration(name)
    oracle = module(FAMILY / name / "reference.py", f"reference_{name}")
    config = {**task.get("scalars", {}), **dims, "dtype": DTYPES[dtype], "distribution": "default"}
    drawn = change(oracle.inputs(config, torch.Generator().manual_seed(1)))
    kept = {key: tensor.clone() for key, tensor in drawn.items()}
    outputs = {key: allocate(declared, config) for key, declared in task["outputs"].items()}
    keywords = {**task.get("scalars", {}), **dims}
    entry = getattr(module(path, f"{name}_under_test"), task["entry"])
    with triton_cpu.tensors(**drawn, **outputs):
        entry(*drawn.values(), *outputs.values(), **keywords)
    assert list(drawn) == list(task["inputs"])
    assert all(torch.equal(kept[key], drawn[key]) for key in drawn)
    exact = {key: t.double() if t.is_floating_point() else t for key, t in drawn.items()}
    expected = oracle.reference(**exact, **keywords)
    errors = [
        (outputs[key].double() - expected[key]).abs() / (1 + expected[key].abs())
        for key in outputs
    ]  # fmt: skip
    return max(error.max().item() if not error.isnan().any() else float("inf") for error in errors)


def shapes_of(name):
    """Shapes chosen for a task; another starter has the sizes of its configs for cpu."""
    task = STARTERS[name].table
    own = [{dim: config[dim] for dim in task["dims"]} for config in task["platform_configs"]["cpu"]]
    return SHAPES.get(name, own)


CASES = [
    (name, version, dims) for name in NAMES for version in VERSIONS for dims in shapes_of(name)
]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("name", "version", "dims"),
    CASES,
    ids=[f"{n}-{v}-{'x'.join(str(s) for s in d.values())}" for n, v, d in CASES],
)
def test_kernel_agrees_with_the_oracle(name, version, dims, dtype):
    assert worst_error(name, source(name, version), dims, dtype) < TOLERANCE[dtype]


@pytest.mark.parametrize("version", VERSIONS)
def test_cross_entropy_of_masked_logits(version):
    """Whole blocks, and whole parts of a row, may be minus infinity."""

    def mask(drawn):
        drawn["logits"][:, 5:9000] = float("-inf")
        drawn["logits"][1, :9000] = float("-inf")
        drawn["target"][:] = torch.tensor([2, 9500, -100])
        return drawn

    dims = {"rows": 3, "vocab": 12289}
    path = source("cross_entropy", version)
    assert worst_error("cross_entropy", path, dims, "f32", mask) < TOLERANCE["f32"]


@pytest.mark.parametrize(("name", "old", "new"), MUTATIONS)
def test_a_broken_kernel_is_noticed(name, old, new, tmp_path):
    text = source(name, "baseline").read_text()
    assert old in text
    broken = tmp_path / "broken.py"
    broken.write_text(text.replace(old, new))
    dims = {
        "rmsnorm": {"rows": 3, "cols": 1031},
        "swiglu": {"rows": 3, "cols": 70},
        "cross_entropy": {"rows": 20, "vocab": 1500},
        "matmul": {"m": 33, "n": 20, "k": 65},
    }
    try:
        error = worst_error(name, broken, dims[name], "f32")
    except triton_cpu.OutOfBoundsError:
        return
    assert error > 10 * TOLERANCE["f32"]


@pytest.mark.parametrize("name", NAMES)
def test_declared_configs_lie_in_the_shape_space(name):
    task = declaration(name)
    ranges = {dim: tuple(map(int, text.split(".."))) for dim, text in task["dims"].items()}
    for config in [*task["configs"], *task["platform_configs"]["cpu"]]:
        assert config.keys() == ranges.keys() | {"dtype"}
        assert config["dtype"] in task["dtypes"]
        assert all(low <= config[dim] <= high for dim, (low, high) in ranges.items())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_compile_gate_accepts_the_source(name, version, tmp_path):
    task = declaration(name)
    signature = {
        "inputs": [[key, "T", []] for key in task["inputs"]],
        "outputs": [[key, "T", []] for key in task["outputs"]],
        "scalars": list(task.get("scalars", {}).items()),
        "dims": list(task["dims"]),
    }
    path = tmp_path / "signature.json"
    path.write_text(json.dumps(signature))
    arguments = [f"--source={source(name, version)}", f"--entry={task['entry']}"]
    assert gate.main([*arguments, f"--signature={path}", f"--out={tmp_path}"]) == 0
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert verdict["verdict"] == "PASS", verdict
    config = task["platform_configs"]["cpu"][0]
    dims = {key: value for key, value in config.items() if key != "dtype"}
    error = worst_error(name, tmp_path / "kernel.py", dims, config["dtype"])
    assert error < TOLERANCE[config["dtype"]]
