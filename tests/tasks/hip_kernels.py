"""Calls compiled HIP task kernels directly, and compares them with the oracle in float64.

The judge does this with processes, sandboxes and clocks between the two; here the
library is loaded into the test, so that many shapes cost little.
"""

import ctypes
import importlib.util
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

TASKS = Path(__file__).parents[2] / "tasks"
DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
}
TOLERANCE = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}
GUARD_BYTES = 256
GUARD = 0xA5
SUCCESS, NOT_SUPPORTED = 0, 801


@dataclass(frozen=True)
class Task:
    """One task package: its declaration and its oracle."""

    family: str
    name: str
    declaration: dict[str, Any]
    reference: ModuleType

    @classmethod
    def load(cls, family: str, name: str) -> "Task":
        """Read tasks/<family>/<name>/{BUILD.toml, reference.py}."""
        package = TASKS / family / name
        (declaration,) = tomllib.loads((package / "BUILD.toml").read_text())[family]
        spec = importlib.util.spec_from_file_location(f"reference_{name}", package / "reference.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return cls(family, name, declaration, module)

    @property
    def kernel(self) -> Path:
        """The editable file: the baseline (hip2hip) or the skeleton (torch2hip)."""
        return TASKS / self.family / self.name / str(self.declaration["kernel"])

    @property
    def expert(self) -> Path:
        """The expert's version of the editable file."""
        return self.kernel.parent / "solutions" / "expert" / self.kernel.name

    @property
    def scalars(self) -> dict[str, float | int]:
        """Scalar arguments with their defaults, in call order."""
        return dict(self.declaration.get("scalars", {}))

    def inputs(
        self, dims: dict[str, int], dtype: str, distribution: str = "default", seed: int = 0
    ) -> dict[str, Tensor]:
        """Draw the inputs of one config with the task's own generator."""
        config = {**self.scalars, **dims, "dtype": DTYPES[dtype], "distribution": distribution}
        drawn: dict[str, Tensor] = self.reference.inputs(
            config, torch.Generator().manual_seed(seed)
        )
        for name, spec in self.declaration["inputs"].items():
            assert drawn[name].dtype is argument_dtype(spec, dtype), name
            assert list(drawn[name].shape) == argument_shape(spec, dims), name
        return drawn

    def expected(self, inputs: dict[str, Tensor], dims: dict[str, int]) -> dict[str, Tensor]:
        """The oracle's outputs, computed in float64."""
        exact = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
        outputs: dict[str, Tensor] = self.reference.reference(**exact, **self.scalars, **dims)
        return outputs

    def mismatch(
        self,
        inputs: dict[str, Tensor],
        outputs: dict[str, Tensor],
        dims: dict[str, int],
        dtype: str,
    ) -> str | None:
        """Say what is wrong with `outputs`, or return None."""
        expected = self.expected(inputs, dims)
        if hasattr(self.reference, "check"):
            verdict: str | None = self.reference.check(
                {**inputs, **self.scalars}, outputs, expected
            )
            return verdict
        for name, exact in expected.items():
            got = outputs[name].double()
            scale = exact.abs() + exact.square().mean().sqrt()
            step = torch.finfo(DTYPES[dtype]).smallest_normal * torch.finfo(DTYPES[dtype]).eps
            wrong = ~((got - exact).abs() <= TOLERANCE[dtype] * scale + step)
            wrong &= ~(exact.isnan() & got.isnan()) & (got != exact)
            if wrong.any():
                worst = tuple(int(i) for i in wrong.nonzero()[0])
                return f"{name}{list(worst)}: expected {exact[worst]}, got {got[worst]}"
        return None


def argument_dtype(spec: str, dtype: str) -> torch.dtype:
    """The dtype of an argument written like `T[rows, cols]`."""
    kind = spec.partition("[")[0]
    return DTYPES[dtype if kind == "T" else kind]


def argument_shape(spec: str, dims: dict[str, int]) -> list[int]:
    """The shape of an argument written like `T[rows, 2 * half]`."""
    return list(eval(f"({spec.partition('[')[2].rstrip(']')},)", {}, dict(dims)))


class Guarded:
    """A tensor between guard bands, `shift` elements off the 16-byte boundary."""

    def __init__(self, shape: list[int], dtype: torch.dtype, shift: int):
        size = torch.Size(shape).numel()
        width = torch.empty((), dtype=dtype).element_size()
        start = GUARD_BYTES + shift * width
        self.raw = torch.full((start + size * width + GUARD_BYTES,), GUARD, dtype=torch.uint8)
        self.before, self.after = self.raw[:start], self.raw[start + size * width :]
        assert self.raw.data_ptr() % 64 == 0
        self.tensor = self.raw[start : start + size * width].view(dtype).view(shape)

    def intact(self) -> bool:
        """Whether nothing wrote outside the tensor."""
        return bool((self.before == GUARD).all()) and bool((self.after == GUARD).all())


@dataclass(frozen=True)
class Call:
    """What one call of an entry gave."""

    status: int
    outputs: dict[str, Tensor]


def call(
    library: Path,
    task: Task,
    dtype: str,
    dims: dict[str, int],
    inputs: dict[str, Tensor],
    shift: int = 0,
) -> Call:
    """Call the entry for `dtype` with poisoned outputs; assert guards and inputs intact."""
    loaded = ctypes.CDLL(str(library))
    symbol = f"{task.declaration['entry']}_{dtype}"
    entry = getattr(loaded, symbol)
    sources = {}
    for name, value in inputs.items():
        sources[name] = Guarded(list(value.shape), value.dtype, shift)
        sources[name].tensor.copy_(value)
    sinks = {}
    for name, spec in task.declaration["outputs"].items():
        sinks[name] = Guarded(argument_shape(spec, dims), argument_dtype(spec, dtype), shift)
        sinks[name].tensor.fill_(float("nan") if sinks[name].tensor.is_floating_point() else -1)
    sizes = [ctypes.c_int64(dims[name]) for name in task.declaration["dims"]]
    arguments: list[Any] = [ctypes.c_void_p(g.tensor.data_ptr()) for g in sources.values()]
    arguments += [ctypes.c_void_p(g.tensor.data_ptr()) for g in sinks.values()]
    for scalar in task.scalars.values():
        is_real = isinstance(scalar, float)
        arguments.append(ctypes.c_float(scalar) if is_real else ctypes.c_int64(int(scalar)))
    arguments += sizes
    scratch = None
    if hasattr(loaded, f"{symbol}_workspace"):
        ask = getattr(loaded, f"{symbol}_workspace")
        ask.restype = ctypes.c_size_t
        scratch = Guarded([ask(*sizes)], torch.uint8, 0)
        arguments.append(ctypes.c_void_p(scratch.tensor.data_ptr()))
    entry.restype = ctypes.c_int
    status = entry(*arguments, ctypes.c_void_p(None))
    guarded = [*sources.values(), *sinks.values(), *([scratch] if scratch else [])]
    assert all(g.intact() for g in guarded), "wrote outside a buffer"
    for name, value in inputs.items():
        assert torch.equal(sources[name].tensor.view(torch.uint8), value.view(torch.uint8)), (
            f"wrote into input {name}"
        )
    return Call(status, {name: g.tensor.clone() for name, g in sinks.items()})
