"""Times variants of kernels, each on the config that was counted, by a light clock.

    python timed.py VARIANTS

VARIANTS is a file of JSON, a list of what ``ranking.py`` writes for each; ``whole`` ones are timed
on the visible config that the counted one was made from. Prints a line of JSON for each:
nanoseconds of a call, and whether its outputs are those of the first variant of its task. A kernel
that breaks the device ends the process, so that the caller begins another after it.

A reading is the mean of some calls in a row, behind other work, so that the host's time does not
count; what is told is the least of five. Caches keep what calls leave in them.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "rules/harness/tools"))

_READINGS, _CALLS, _LONG = 5, 20, 2e-3
_DEVICE = "cuda"
_CLOSE = 0.05
"""Of the root mean square: how far outputs may be apart that are computed in another order."""

Call = Callable[[], int]


class Clock:
    """The device's own events, behind a product that takes longer than the host needs."""

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        self._filler = torch.randn(4096, 4096)
        self._made = torch.empty_like(self._filler)

    def seconds(self, call: Call) -> float:
        """Of one call. Raises RuntimeError where a call fails."""
        once = self._reading(call, 1)
        calls = _CALLS if once < _LONG else 3
        return min(self._reading(call, calls) for _ in range(_READINGS))

    def _reading(self, call: Call, calls: int) -> float:
        first, last = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._torch.mm(self._filler, self._filler, out=self._made)
        first.record()
        for _ in range(calls):
            if error := call():
                raise RuntimeError(f"it returned error {error}")
        last.record()
        self._torch.cuda.synchronize()
        return float(first.elapsed_time(last)) / 1e3 / calls


class Inputs:
    """The inputs of a config, drawn once for all variants of its task, and their outputs."""

    def __init__(self) -> None:
        self._of: tuple[str, str] = ("", "")
        self._drawn: Mapping[str, Any] = {}
        self._outputs: list[Any] | None = None

    def draw(self, wanted: Mapping[str, Any], spec: Any, config: Any) -> Mapping[str, Any]:
        """By name, on the device."""
        import torch
        from truth.oracle import Oracle

        of = (wanted["task"], config.name)
        if of != self._of:
            oracle = Oracle(wanted["reference"], spec.signature)
            generator = torch.Generator(_DEVICE).manual_seed(1)
            self._drawn, self._of = oracle.inputs(config, generator), of
            self._outputs = None
        return self._drawn

    def same(self, outputs: list[Any]) -> bool:
        """Whether these are the outputs of the first variant; true of that one itself."""
        first = self._outputs
        if first is None:
            self._outputs = [tensor.clone() for tensor in outputs]
            return True
        return all(_near(one, other) for one, other in zip(outputs, first, strict=True))


def _near(one: Any, other: Any) -> bool:
    if not one.is_floating_point():
        return bool((one == other).all())
    given, true = one.double(), other.double()
    scale = float(true.nan_to_num().square().mean().sqrt()) or 1.0
    apart = (given - true).nan_to_num().square().mean().sqrt()
    return float(apart) <= _CLOSE * scale


def time_one(wanted: Mapping[str, Any], inputs: Inputs, clock: Clock) -> dict[str, Any]:
    """One variant. Raises RuntimeError where it fails, and what ctypes and the oracle do."""
    import torch
    from base import shapes
    from base.spec import config_name, parse_spec
    from base.tensors import torch_dtype
    from runners.config_memory import scalar

    spec = parse_spec(wanted["spec"])
    visible = next(config for config in spec.configs if config.name == wanted["of"])
    config = visible if wanted["whole"] else _config(visible, spec, wanted["config"], config_name)
    drawn = inputs.draw(wanted, spec, config)
    tensors = [drawn[argument.name].clone() for argument in spec.signature.inputs]
    outputs = [
        torch.zeros(
            shapes.shape(argument, config.dims),
            dtype=torch_dtype(shapes.dtype_name(argument, config)),
        )
        for argument in spec.signature.outputs
    ]
    library = ctypes.CDLL(wanted["library"])
    entry = spec.candidate.entry
    symbols = (f"{entry}_{config.dtype}", entry)
    symbol = next(name for name in symbols if hasattr(library, name))
    dims = [ctypes.c_int64(config.dims[name]) for name in spec.signature.dims]
    scratch = []
    if hasattr(library, f"{symbol}_workspace"):
        size_of = getattr(library, f"{symbol}_workspace")
        size_of.restype = ctypes.c_size_t
        scratch = [torch.zeros(max(1, size_of(*dims)), dtype=torch.uint8)]
    values = [scalar(pair, config)[1] for pair in spec.signature.scalars]
    arguments = [
        *(ctypes.c_void_p(tensor.data_ptr()) for tensor in (*tensors, *outputs)),
        *(ctypes.c_float(v) if isinstance(v, float) else ctypes.c_int64(v) for v in values),
        *dims,
        *(ctypes.c_void_p(tensor.data_ptr()) for tensor in scratch),
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
    ]
    function = getattr(library, symbol)
    if error := int(function(*arguments)):
        raise RuntimeError(f"it returned error {error}")
    torch.cuda.synchronize()
    same = inputs.same(outputs)
    return {"ns": round(clock.seconds(lambda: int(function(*arguments))) * 1e9, 1), "same": same}


def _config(visible: Any, spec: Any, name: str, config_name: Callable[..., str]) -> Any:
    """The config of a name, made from a visible one by other dims."""
    from base.program import Config

    dtype, *dims = name.split()
    sizes = {dim: int(size) for dim, _, size in (word.partition("=") for word in dims)}
    found = {dim: sizes[dim] for dim in spec.signature.dims}
    assert config_name(dtype, found) == name
    return Config(name, found, dtype, visible.scalars)


def main(arguments: list[str]) -> None:
    """Time all of them."""
    import torch

    torch.set_default_device(_DEVICE)
    clock, inputs = Clock(), Inputs()
    for wanted in json.loads(Path(arguments[0]).read_bytes()):
        told = {"name": wanted["name"], "config": wanted["config"]}
        print(json.dumps({**told, "begun": True}), flush=True)
        try:
            found = time_one(wanted, inputs, clock)
        except (RuntimeError, OSError, StopIteration, ValueError) as error:
            found = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps({**told, **found}), flush=True)
        if "error" in found:
            torch.cuda.synchronize()  # raises where the device is broken, which ends all this


if __name__ == "__main__":
    main(sys.argv[1:])
