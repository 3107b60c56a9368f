"""The PyTorch operators that a Triton candidate may use on the CPU: allocate, view, fill, copy.

Everything else is computation, which kernels must do. A candidate that gets around this filter
gains nothing: its tensors have no memory in its process (``territory``), and the process that has
the memory serves only these requests (``device_work``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from triton_apart.territory import Heap

MOST_READ = 16  # elements that the host may read in a call
_CHUNK = 32 << 10
Spec = list[Any]  # address, dtype, shape, strides

_EMPTY = {
    "aten.empty.memory_format", "aten.empty_strided.default", "aten.empty_like.default",
    "aten.new_empty.default", "aten.new_empty_strided.default",
}  # fmt: skip
_FILLED = {
    "aten.zeros.default": 0, "aten.zeros_like.default": 0, "aten.new_zeros.default": 0,
    "aten.ones.default": 1, "aten.ones_like.default": 1, "aten.new_ones.default": 1,
}  # fmt: skip
_FULL = {"aten.full.default": 1, "aten.full_like.default": 1, "aten.new_full.default": 2,
         "aten.scalar_tensor.default": 0}  # fmt: skip
_READING = {"numpy", "tolist", "__array__", "__dlpack__", "storage"}


class OperatorRefused(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """'<operator>' computes outside the candidate's kernels: <why>."""

    def __init__(self, operator: str, why: str = "") -> None:
        allowed = "PyTorch may allocate, view, fill and copy, and read single elements"
        super().__init__(f"'{operator}' computes outside the candidate's kernels: {why or allowed}")


class Memory(Protocol):
    """The memory of the other process."""

    def fill(self, tensor: Spec, value: float) -> None:
        """Set all elements of a tensor to one value."""

    def copy(self, target: Spec, source: Spec) -> None:
        """Copy elements; only a single one may change its dtype."""

    def read(self, tensor: Spec) -> float | None:
        """The tensor's only element; None if the call has read too many."""

    def write(self, address: int, data: bytes) -> None:
        """Write bytes from this process."""


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """Runs the allowed operators on the device's memory, and refuses the others."""

    def __init__(self, heap: Heap, memory: Memory) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._heap = heap
        self._memory = memory
        self._own: Mapping[str, Callable[..., Any]] = {
            "aten.copy_.default": self._copy,
            "aten.clone.default": self._clone,
            "aten._to_copy.default": self._to_copy,
            "aten.fill_.Scalar": self._fill,
            "aten.fill_.Tensor": self._copy,
            "aten.zero_.default": lambda target: self._fill(target, 0),
            "aten._local_scalar_dense.default": self._read,
            "aten.lift_fresh.default": self._bring,
        }

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: nothing is compiled here, and importing the compiler takes a second."""
        return False

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = str(func)
        if name in self._own:
            return self._own[name](*args, **kwargs)
        if name in _EMPTY or name in _FILLED or name in _FULL:
            return self._allocated(func, name, args, kwargs)
        if func.namespace == "aten" and func.is_view:
            return func(*args, **kwargs)
        raise OperatorRefused(name)

    def _allocated(self, func: Any, name: str, args: Sequence[Any], kwargs: Any) -> Tensor:
        on_host = kwargs.get("device") in {None, torch.device("cpu")}
        if kwargs.get("pin_memory"):
            raise OperatorRefused(name, "the cpu platform has no pinned memory")
        if not on_host:
            raise OperatorRefused(name, f"the cpu platform has no device {kwargs.get('device')}")
        like = func(*args, **{**kwargs, "device": "meta"})
        made = self._new(like)
        if name in _FILLED:
            self._fill(made, _FILLED[name])
        elif name in _FULL:
            at = _FULL[name]
            self._fill(made, args[at] if len(args) > at else kwargs["fill_value"])
        return made

    def _new(self, like: Tensor) -> Tensor:
        """Allocate a tensor with the shape, strides and dtype of ``like``."""
        last = sum((n - 1) * stride for n, stride in zip(like.shape, like.stride(), strict=True))
        size = (last + 1) * like.element_size() if like.numel() else 0
        if not size:
            return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
        flat = self._heap.flat(size).view(like.dtype)
        return flat.as_strided(like.shape, like.stride())

    def _fill(self, target: Tensor, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return self._copy(target, value)
        if type(value) not in {bool, int, float}:
            raise OperatorRefused("fill_", f"a tensor is filled with a number, not {type(value)}")
        if target.numel():
            self._memory.fill(spec(target), value)
        return target

    def _copy(self, target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:  # noqa: ARG002, FBT001, FBT002
        if source.dtype != target.dtype and source.numel() > 1:
            raise _cast("copy_", source, target.dtype)
        if target.numel():
            shaped = source.expand(target.shape)
            self._memory.copy(spec(target), spec(shaped))
        return target

    def _clone(self, source: Tensor, memory_format: Any = torch.preserve_format) -> Tensor:
        made = self._new(torch.empty_like(source, device="meta", memory_format=memory_format))
        return self._copy(made, source)

    def _to_copy(self, source: Tensor, **how: Any) -> Tensor:
        dtype = how.get("dtype") or source.dtype
        if how.get("device") not in {None, torch.device("cpu")}:
            raise OperatorRefused("_to_copy", f"the cpu platform has no device {how['device']}")
        if dtype != source.dtype and source.numel() > 1:
            raise _cast("_to_copy", source, dtype)
        format_ = how.get("memory_format") or torch.preserve_format
        like = torch.empty_like(source, dtype=dtype, device="meta", memory_format=format_)
        return self._copy(self._new(like), source)

    def _read(self, tensor: Tensor) -> Any:
        value = self._memory.read(spec(tensor))
        if value is None:
            what = f"the host may read at most {MOST_READ} elements in a call"
            raise OperatorRefused("item", what)
        return bool(value) if tensor.dtype == torch.bool else value

    def _bring(self, tensor: Tensor) -> Tensor:
        """Copy a tensor of this process into a new tensor of the device."""
        if not tensor.numel():
            return tensor
        made = self._new(tensor)
        data = bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())
        for first in range(0, len(data), _CHUNK):
            self._memory.write(made.data_ptr() + first, data[first : first + _CHUNK])
        return made


class Functions(TorchFunctionMode):
    """Refuses the functions that would read a tensor's memory without any operator."""

    def __torch_function__(
        self, func: Any, _types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "") in _READING and args and isinstance(args[0], Tensor):
            tensor = args[0]
            if func.__name__ == "tolist" and tensor.numel() <= MOST_READ:
                return _listed(tensor)
            raise OperatorRefused(func.__name__, "the host cannot see the values of a tensor")
        return func(*args, **(kwargs or {}))


def spec(tensor: Tensor) -> Spec:
    """Describe where a tensor's elements are, for the process that has the memory."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return [tensor.data_ptr(), dtype, list(tensor.shape), list(tensor.stride())]


def _listed(tensor: Tensor) -> Any:
    return tensor.item() if not tensor.dim() else [_listed(part) for part in tensor.unbind(0)]


def _cast(name: str, source: Tensor, dtype: torch.dtype) -> OperatorRefused:
    what = f"{source.dtype} to {dtype} converts {source.numel()} elements"
    return OperatorRefused(name, f"{what}; convert in a kernel, when it loads or stores")
