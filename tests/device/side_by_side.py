"""The experts beside PyTorch on shapes that others have published, and what the device can do.

    python side_by_side.py --experts WORKPLACE --out FILE

Every variant is timed with a cold cache: before each call more than the cache is written. All
variants of one operation take turns, and each has inputs that rotate. Times are medians.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from kernel_calls import argument, loaded, scratch_memory
from roofline import product_name, products
from torch import Tensor
from torch.nn import functional

Call = Callable[[int], Any]
ROUNDS, CALLS = 7, 20
SETS = 3
MODE = "max-autotune-no-cudagraphs"
_FLUSHED = 256 << 20
_COPIED = 1 << 31
_HALF = torch.float16
_KINDS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
# Measured on an H200 with AutoKernel's starter kernels, run unchanged, and torch.compile in the
# mode above, in microseconds.
PUBLISHED = {
    "rmsnorm 8192x8192": (71.8, 68.1),
    "softmax 8192x8192": (71.2, 127.9),
    "cross_entropy 8192x32000": (219.7, 330.8),
    "layernorm 8192x8192": (72.4, 71.4),
}


class Experts:
    """The experts of this repository: modules, and libraries that kabuild has compiled."""

    def __init__(self, workplace: Path) -> None:
        self._root = workplace
        torch.empty(1, device="cuda")  # loads the runtime library
        ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)

    def triton(self, name: str) -> Callable[..., None]:
        """The entry of a Triton expert."""
        path = self._root / f"tasks/triton2triton/{name}/solutions/expert/{name}.py"
        module = loaded(path)
        entry: Callable[..., None] = getattr(module, name)
        return entry

    def hip(self, name: str) -> Callable[..., None]:
        """The entry of a HIP expert for float16; takes tensors, floats and ints."""
        library = ctypes.CDLL(
            str(self._root / f"out/tasks/hip2hip/{name}/{name}.compile/kernel.so")
        )
        function = getattr(library, f"{name}_f16")
        workspace = scratch_memory(library, f"{name}_f16_workspace", "cuda")

        def call(*arguments: Tensor | float) -> None:
            dims = (value for value in arguments if isinstance(value, int))
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            error = function(*map(argument, (*arguments, *workspace(*dims))), stream)
            assert error == 0, f"hipError_t {error}"

        return call


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under torch.compile, once per function: nothing is shared."""
    torch._dynamo.reset()
    made: Callable[..., Any] = torch.compile(function, mode=MODE)
    return made


def medians(variants: Mapping[str, Call]) -> dict[str, dict[str, float]]:
    """Microseconds a call of each variant: median, and the quartiles of all calls."""
    scratch = torch.empty(_FLUSHED, dtype=torch.uint8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in variants}
    for call in variants.values():
        for number in range(SETS):
            call(number)
    for _ in range(ROUNDS):
        for name, call in variants.items():
            times[name] += _round(call, scratch)
    return {name: _summary(found) for name, found in times.items()}


def _round(call: Call, scratch: Tensor) -> list[float]:
    pairs = []
    torch.cuda.synchronize()
    for number in range(CALLS):
        start, stop = _event(), _event()
        scratch.zero_()
        start.record()
        call(number % SETS)
        stop.record()
        pairs.append((start, stop))
    torch.cuda.synchronize()
    return [1e3 * start.elapsed_time(stop) for start, stop in pairs]


def _event() -> Any:
    make: Callable[..., Any] = torch.cuda.Event
    return make(enable_timing=True)


def _summary(times: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(times, n=4)
    return {"median_us": round(middle, 2), "low_us": round(low, 2), "high_us": round(high, 2)}


def _normal(*shape: int) -> list[Tensor]:
    return [torch.randn(*shape, dtype=_HALF, device="cuda") for _ in range(SETS)]


def _check(got: Tensor, expected: Tensor) -> None:
    """The experts' figures are of right results only."""
    torch.testing.assert_close(got.double(), expected.double(), rtol=4e-3, atol=4e-3)


def rmsnorm(experts: Experts) -> dict[str, Any]:
    """float16, 8192 x 8192."""
    x, weight, y = _normal(8192, 8192), torch.randn(8192, dtype=_HALF, device="cuda"), _out()
    ours = experts.triton("rmsnorm")

    def five_operations(x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

    def built_in(x: Tensor) -> Tensor:
        return functional.rms_norm(x, (8192,), weight, 1e-6)

    five_compiled, built_in_compiled = compiled(five_operations), compiled(built_in)
    ours(x[0], weight, y, eps=1e-6, rows=8192, cols=8192)
    _check(y, functional.rms_norm(x[0].double(), (8192,), weight.double(), 1e-6))
    return medians(
        {
            "expert": lambda i: ours(x[i], weight, y, eps=1e-6, rows=8192, cols=8192),
            "eager, five operations": lambda i: five_operations(x[i]),
            "F.rms_norm": lambda i: built_in(x[i]),
            "compiled, five operations": lambda i: five_compiled(x[i]),
            "compiled, F.rms_norm": lambda i: built_in_compiled(x[i]),
        }
    )


def softmax(experts: Experts) -> dict[str, Any]:
    """float16, 8192 x 8192."""
    x, y = _normal(8192, 8192), _out()
    ours = experts.hip("softmax")
    theirs = compiled(lambda x: torch.softmax(x, -1))
    ours(x[0], y, 8192, 8192)
    _check(y, torch.softmax(x[0].double(), -1))
    return medians(
        {
            "expert": lambda i: ours(x[i], y, 8192, 8192),
            "eager": lambda i: torch.softmax(x[i], -1),
            "compiled": lambda i: theirs(x[i]),
        }
    )


def layernorm(experts: Experts) -> dict[str, Any]:
    """float16, 8192 x 8192."""
    x, y = _normal(8192, 8192), _out()
    weight, bias = (torch.randn(8192, dtype=_HALF, device="cuda") for _ in range(2))
    ours = experts.hip("layernorm")

    def built_in(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (8192,), weight, bias, 1e-5)

    theirs = compiled(built_in)
    ours(x[0], weight, bias, y, 1e-5, 8192, 8192)
    _check(y, functional.layer_norm(x[0].double(), (8192,), weight.double(), bias.double(), 1e-5))
    return medians(
        {
            "expert": lambda i: ours(x[i], weight, bias, y, 1e-5, 8192, 8192),
            "eager": lambda i: built_in(x[i]),
            "compiled": lambda i: theirs(x[i]),
        }
    )


def cross_entropy(experts: Experts) -> dict[str, Any]:
    """float16, 8192 rows of 32000 logits; one loss a row."""
    x = _normal(8192, 32000)
    target = torch.randint(0, 32000, (8192,), device="cuda")
    loss = torch.empty(8192, dtype=torch.float32, device="cuda")
    sizes = {"ignore_index": -100, "rows": 8192, "vocab": 32000}
    ours = experts.triton("cross_entropy")

    def built_in(x: Tensor) -> Tensor:
        return functional.cross_entropy(x, target, reduction="none")

    theirs = compiled(built_in)
    ours(x[0], target, loss, **sizes)
    _check(loss, functional.cross_entropy(x[0].double(), target, reduction="none"))
    return medians(
        {
            "expert": lambda i: ours(x[i], target, loss, **sizes),
            "eager": lambda i: built_in(x[i]),
            "compiled": lambda i: theirs(x[i]),
        }
    )


def device_limits(root: Path) -> dict[str, Any]:
    """Bytes a second of a copy, read and written; microseconds of the vendor's matrix products."""
    source, target = (torch.empty(_COPIED, dtype=torch.uint8, device="cuda") for _ in range(2))
    copied = medians({"copy": lambda _: target.copy_(source)})["copy"]
    return {
        "copy": {**copied, "bytes_per_second": 2 * _COPIED / (copied["median_us"] * 1e-6)},
        "matrix_products": {
            product_name(dtype, size): medians({"mm": _product(dtype, size)})["mm"]
            for dtype, size in products(root)
        },
    }


def _product(dtype: str, size: Sequence[int]) -> Call:
    """What the vendor's library does for ``c[m, n] = a[m, k] @ b[k, n]``."""
    kind, (m, n, k) = _KINDS[dtype], size
    a = [torch.randn(m, k, dtype=kind, device="cuda") for _ in range(SETS)]
    b = torch.randn(k, n, dtype=kind, device="cuda")
    c = torch.empty(m, n, dtype=kind, device="cuda")
    return lambda i: torch.mm(a[i], b, out=c)


def _out() -> Tensor:
    return torch.empty(8192, 8192, dtype=_HALF, device="cuda")


def main() -> None:
    """Measure everything and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    experts = Experts(options.experts)
    found: dict[str, Any] = {"mode of compiled": MODE, "device": device_limits(options.experts)}
    for name, (autokernel, compile_) in PUBLISHED.items():
        operation = {f.__name__: f for f in (rmsnorm, softmax, cross_entropy, layernorm)}
        found[name] = {
            **operation[name.partition(" ")[0]](experts),
            "measured earlier": {"AutoKernel": autokernel, "compiled": compile_},
        }
        options.out.write_text(json.dumps(found, indent=1))
        print(name, {k: v.get("median_us") for k, v in found[name].items()}, flush=True)


if __name__ == "__main__":
    main()
