"""The device math library (`triton.language.extra.libdevice`) on the host, using PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
import triton.language as tl

from triton_cpu.builder import Handle, UnsupportedOperationError, conformed

_MODULES = (
    "triton.language.extra.libdevice",
    "triton.language.extra.cuda.libdevice",
    "triton.language.extra.hip.libdevice",
)


def _half_away(value: torch.Tensor) -> torch.Tensor:
    """Round as C does: halves away from zero."""
    whole = torch.trunc(value)
    return torch.where((value - whole).abs() < 0.5, whole, whole + torch.sign(value))


# Functions whose results have the type of their first argument.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": torch.abs, "acos": torch.acos, "acosh": torch.acosh, "asin": torch.asin,
    "asinh": torch.asinh, "atan": torch.atan, "atan2": torch.atan2, "atanh": torch.atanh,
    "ceil": torch.ceil, "copysign": torch.copysign, "cos": torch.cos, "cosh": torch.cosh,
    "cyl_bessel_i0": torch.special.i0, "div_rn": torch.div, "erf": torch.special.erf,
    "erfc": torch.special.erfc, "erfcx": torch.special.erfcx, "erfinv": torch.special.erfinv,
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "fast_cosf": torch.cos,
    "fast_dividef": torch.div, "fast_expf": torch.exp, "fast_log10f": torch.log10,
    "fast_log2f": torch.log2, "fast_logf": torch.log, "fast_powf": torch.pow,
    "fast_sinf": torch.sin, "fast_tanf": torch.tan, "fast_tanhf": torch.tanh,
    "floor": torch.floor, "fmod": torch.fmod, "hypot": torch.hypot, "lgamma": torch.lgamma,
    "log": torch.log, "log10": torch.log10, "log1p": torch.log1p, "log2": torch.log2,
    "nearbyint": torch.round, "nextafter": torch.nextafter, "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri, "pow": torch.pow, "rint": torch.round,
    "round": _half_away, "rsqrt": torch.rsqrt, "sin": torch.sin, "sinh": torch.sinh,
    "sqrt": torch.sqrt, "tan": torch.tan, "tanh": torch.tanh, "trunc": torch.trunc,
}  # fmt: skip
# Functions whose results are truth values, an int32 as on a GPU.
_PREDICATES: dict[str, Callable[..., Any]] = {
    "isnan": torch.isnan, "isinf": torch.isinf, "finitef": torch.isfinite,
    "isfinited": torch.isfinite, "signbit": torch.signbit,
}  # fmt: skip


def install() -> None:
    """Replace the library's functions, here and in the back ends' own copies of it."""
    for module in map(importlib.import_module, _MODULES):
        for name, value in list(vars(module).items()):
            if callable(value) and not name.startswith("_") and value.__module__ == module.__name__:
                setattr(module, name, _host(name))


def _host(name: str) -> Callable[..., Any]:
    function = _FUNCTIONS.get(name) or _PREDICATES.get(name)
    if function is None:

        def refuse(*_: Any, **__: Any) -> Any:
            raise UnsupportedOperationError(f"libdevice.{name}")

        return refuse

    def compute(*args: Any, **_: Any) -> Any:
        values = [_checked(name, value) for value in args]
        result = function(*(torch.from_numpy(value.handle.data.copy()) for value in values))
        dtype = tl.int32 if name in _PREDICATES else values[0].dtype
        handle: Handle = conformed(result.numpy(), dtype)
        shape = list(handle.data.shape)
        block = any(value.type.is_block() for value in values)
        return tl.tensor(handle, tl.block_type(dtype, shape) if block else dtype)

    return compute


def _checked(name: str, value: Any) -> Any:
    if isinstance(value, tl.tensor) and value.dtype in (tl.float32, tl.float64):
        return value
    found = value.dtype if isinstance(value, tl.tensor) else type(value).__name__
    raise TypeError(f"libdevice.{name} takes fp32 and fp64 tensors, not {found}")
