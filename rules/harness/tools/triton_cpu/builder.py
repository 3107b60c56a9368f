"""The operations of Triton's interpreter, corrected: checked memory, small floats, GPU rounding.

Triton's front end emits each operation of a kernel through a builder; the interpreter's builder
computes it at once with NumPy. This one inherits the operations that are right and replaces the
others. It refuses operations that it cannot do correctly, and names them.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.runtime import interpreter

from triton_cpu import bf16, fp8
from triton_cpu.bounds import Memory

Handle = interpreter.TensorHandle

_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
_UNKNOWN = "fp8e4b15"
"""A format that neither PyTorch nor later GPUs have."""
_FLOAT32 = np.dtype(np.float32)
_NARROW: dict[str, Any] = {tl.bfloat16.name: bf16, **fp8.FORMATS}
"""Types that NumPy lacks, by name, with the functions that convert their bits and round to them."""
# A cache, since Triton rebuilds its table at each lookup.
_storage: dict[str, Any] = {}
_upstream_numpy_dtype = interpreter._get_np_dtype  # noqa: SLF001 - the interpreter has no public API


class UnsupportedOperationError(Exception):
    """The cpu platform does not run <operation> of Triton: <why>."""

    def __init__(self, operation: str, why: str = "its interpreter has no equivalent") -> None:
        self.operation = operation
        super().__init__(f"the cpu platform does not run Triton's '{operation}': {why}")


def numpy_dtype(dtype: Any) -> Any:
    """Give the NumPy dtype in which values of a Triton type are held: float32 for narrow ones."""
    return _FLOAT32 if dtype.scalar.name in _NARROW else storage_dtype(dtype)


def storage_dtype(dtype: Any) -> Any:
    """Give the NumPy dtype of one element in memory: uint16 for bf16, uint8 for fp8.

    Raises UnsupportedOperationError.
    """
    name = dtype.scalar.name
    if name == _UNKNOWN:
        raise UnsupportedOperationError(str(dtype.scalar))
    found = _storage.get(name)
    if found is None:
        found = _storage.setdefault(name, _upstream_numpy_dtype(dtype.scalar))
    return found


def fits(values: Any, dtype: Any) -> bool:
    """Whether a handle may hold `values` as `dtype`: no wider than it; any for narrow types."""
    if isinstance(dtype, tl.pointer_type) or dtype.scalar.name in _NARROW:
        return True
    return bool(values.itemsize * 8 <= max(dtype.primitive_bitwidth, 8))


def conformed(values: Any, dtype: Any) -> Any:
    """Make a handle of a computed array, rounded to its type."""
    scalar = dtype.scalar
    if narrow := _NARROW.get(scalar.name):
        return Handle(narrow.rounded(values), scalar)
    return Handle(np.asarray(values).astype(numpy_dtype(scalar), copy=False), scalar)


def _to_storage(handle: Any, dtype: Any) -> Any:
    if narrow := _NARROW.get(dtype.name):
        return narrow.to_bits(handle.data)
    return np.ascontiguousarray(handle.data, dtype=storage_dtype(dtype))


def _from_storage(raw: Any, dtype: Any) -> Any:
    narrow = _NARROW.get(dtype.name)
    return Handle(narrow.from_bits(raw) if narrow else raw, dtype)


def _undefined(shape: tuple[int, ...], dtype: Any) -> Any:
    """Values of lanes that a load masks off without `other`: NaN, so that their use shows, or 0."""
    storage = storage_dtype(dtype)
    if narrow := _NARROW.get(dtype.name):
        return np.broadcast_to(narrow.to_bits(np.array([np.nan], dtype=np.float32)), shape)
    return np.full(shape, np.nan if dtype.is_floating() else 0, dtype=storage)


class CheckedBuilder(interpreter.InterpreterBuilder):  # type: ignore[misc]  # Triton has no types
    """Computes the operations of one program at a time, and checks its memory accesses."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        # Checks of integer overflow would only feed a device assertion, which is off, and cost
        # three times as much as the addition.
        self.options = interpreter.InterpreterOptions(
            sanitize_overflow=False, default_dot_input_precision="ieee", supported_fp8_dtypes=()
        )
        self.memory = memory
        self.grid_dim = (1, 1, 1)
        self.grid_idx = (0, 0, 0)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("create_", "get_")):
            raise UnsupportedOperationError(name.removeprefix("create_").removeprefix("get_"))
        raise AttributeError(name)

    # Constants and types.

    def get_bf16(self, value: float) -> Any:
        """Make a bf16 constant."""
        return Handle(bf16.rounded(np.array([value], dtype=np.float32)), tl.bfloat16)

    # Memory.

    def create_masked_load(  # noqa: PLR0917 - Triton's parameters
        self,
        ptrs: Any,
        mask: Any,
        other: Any,
        cache_modifier: Any,  # noqa: ARG002 - these are hints to a GPU
        eviction_policy: Any,  # noqa: ARG002
        is_volatile: Any,  # noqa: ARG002
    ) -> Any:
        """Load one element per lane, after the bounds check."""
        dtype = ptrs.get_element_ty()
        storage = storage_dtype(dtype)
        lanes = _lanes(mask, ptrs)
        self.memory.check("load", ptrs.data, lanes, storage.itemsize, self.grid_idx)
        if other is None:
            filler = _undefined(ptrs.data.shape, dtype)
        else:
            filler = np.broadcast_to(_to_storage(other, dtype), ptrs.data.shape)
        return _from_storage(native.load(ptrs.data, lanes, filler, storage), dtype)

    def create_load(self, ptr: Any, _cache: Any, _eviction: Any, is_volatile: Any) -> Any:
        """Load one element per lane, all lanes active."""
        return self.create_masked_load(ptr, _every(ptr), None, None, None, is_volatile)

    def create_masked_store(
        self, ptrs: Any, value: Any, mask: Any, _cache: Any, _eviction: Any
    ) -> None:
        """Store one element per lane, after the bounds check."""
        dtype = ptrs.get_element_ty()
        data = np.broadcast_to(_to_storage(value, dtype), ptrs.data.shape)
        lanes = _lanes(mask, ptrs)
        self.memory.check("store", ptrs.data, lanes, data.itemsize, self.grid_idx)
        native.store(ptrs.data, data, lanes)

    def create_store(self, ptr: Any, val: Any, _cache: Any, _eviction: Any) -> None:
        """Store one element per lane, all lanes active."""
        self.create_masked_store(ptr, val, _every(ptr), None, None)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, _scope: Any) -> Any:
        """Compare and swap by bit pattern, after the bounds check."""
        dtype = cmp.dtype.scalar
        width = storage_dtype(dtype).itemsize
        self.memory.check("atomic", ptr.data, np.ones(1, dtype=bool), width, self.grid_idx)
        old = native.atomic_cas(
            ptr.data, _to_storage(cmp, dtype), _to_storage(val, dtype),
            self.ir_sem_to_interpreter_sem[sem],
        )  # fmt: skip
        return _from_storage(old, dtype)

    def create_atomic_rmw(
        self, rmw: Any, ptr: Any, val: Any, mask: Any, sem: Any, _scope: Any
    ) -> Any:
        """Read, modify and write one element per lane in lane order, after the bounds check."""
        dtype = val.dtype.scalar
        lanes = _lanes(mask, ptr)
        width = storage_dtype(dtype).itemsize
        self.memory.check("atomic", ptr.data, lanes, width, self.grid_idx)
        if dtype in (tl.bfloat16, tl.float16) and rmw == ir.ATOMIC_OP.FADD:
            return self._add_in_order(ptr, val, lanes, dtype)
        old = native.atomic_rmw(
            self.ir_rmw_op_to_interpreter_rmw_op[rmw], ptr.data,
            np.broadcast_to(_to_storage(val, dtype), ptr.data.shape), lanes,
            self.ir_sem_to_interpreter_sem[sem],
        )  # fmt: skip
        return _from_storage(old, dtype)

    def _add_in_order(self, ptr: Any, val: Any, lanes: Any, dtype: Any) -> Any:
        """Add 16-bit floats atomically: Triton's own routine supports only 32 and 64 bits."""
        addresses = ptr.data.reshape(-1)
        values = np.broadcast_to(val.data, ptr.data.shape).reshape(-1)
        old = np.zeros(addresses.shape, dtype=numpy_dtype(dtype))
        storage = storage_dtype(dtype)
        true = np.ones(1, dtype=bool)
        for lane in np.flatnonzero(lanes.reshape(-1)):
            at = addresses[lane : lane + 1]
            before = _from_storage(native.load(at, true, np.zeros(1, storage), storage), dtype)
            after = conformed(before.data + values[lane : lane + 1], dtype)
            native.store(at, _to_storage(after, dtype), true)
            old[lane] = before.data[0]
        return Handle(old.reshape(ptr.data.shape), dtype)

    # Casts.

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert values, rounding to nearest even."""
        return conformed(src.data, dst_type)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        """Narrow a float with the given rounding."""
        scalar = dst_type.scalar
        towards_zero = rounding_mode == ir.ROUNDING_MODE.RTZ
        narrow = _NARROW.get(scalar.name)
        if narrow and towards_zero:
            return Handle(narrow.truncated(src.data), scalar)
        nearest = conformed(src.data, scalar)
        if not towards_zero:
            return nearest
        beyond = np.abs(nearest.data.astype(np.float64)) > np.abs(src.data)
        return Handle(
            np.where(beyond, np.nextafter(nearest.data, np.zeros_like(nearest.data)), nearest.data),
            scalar,
        )

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        """Reinterpret bit patterns."""
        scalar = dst_type.scalar
        narrow = _NARROW.get(src.dtype.scalar.name)
        held = narrow.to_bits(src.data) if narrow else src.data
        if narrow := _NARROW.get(scalar.name):
            return Handle(narrow.from_bits(np.ascontiguousarray(held)), scalar)
        return Handle(np.ascontiguousarray(held).view(storage_dtype(dst_type)), scalar)

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    # Arithmetic.

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        """Apply a NumPy function of two operands; comparisons give int1."""
        values = op(lhs.data, rhs.data)
        return conformed(values, tl.int1 if op in _COMPARISONS else lhs.dtype)

    def ternary_op(self, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        """Apply a NumPy function of three operands (a select, a clamp)."""
        return conformed(op(lhs.data, rhs.data, other.data), other.dtype)

    def unary_op(self, arg: Any, op: Any) -> Any:
        """Apply a NumPy function of one operand."""
        return conformed(op(arg.data), arg.dtype)

    def create_idiv(self, lhs: Any, rhs: Any) -> Any:
        """Divide integers, truncating towards zero."""
        return conformed((lhs.data - np.fmod(lhs.data, rhs.data)) // rhs.data, lhs.dtype)

    def create_ashr(self, lhs: Any, rhs: Any) -> Any:
        """Shift right, keeping the sign."""
        signed = interpreter._get_signed_np_dtype(lhs.data.dtype)  # noqa: SLF001
        shifted = np.right_shift(lhs.data.astype(signed), rhs.data.astype(signed))
        return conformed(shifted, lhs.dtype)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        """Multiply and add in float64, then round to the type."""
        exact = x.data.astype(np.float64) * y.data + z.data
        return conformed(exact, z.dtype)

    def create_fabs(self, arg: Any) -> Any:
        """Clear the sign."""
        return self.unary_op(arg, np.abs)

    def create_erf(self, arg: Any) -> Any:
        """Compute the error function."""
        values = torch.special.erf(torch.from_numpy(np.array(arg.data)))
        return conformed(values.numpy(), arg.dtype)

    def create_rsqrt(self, arg: Any) -> Any:
        """Compute 1/sqrt(x)."""
        return conformed(1 / np.sqrt(arg.data), arg.dtype)

    def create_dot(self, a: Any, b: Any, d: Any, _precision: Any, _imprecise: Any) -> Any:
        """Multiply matrices in float32, or in float64 for f64 and integers.

        The products of floats with at most 16 bits are exact.
        """
        scalar = d.dtype.scalar
        # Integers are exact in float64 below 2**53, and NumPy's own integer product is slow.
        wide = np.float64 if scalar.is_int() or scalar == tl.float64 else np.float32
        # Not with NumPy: its BLAS starts threads after a fork, which a sandbox forbids.
        left, right = (torch.from_numpy(np.array(m.data, dtype=wide, order="C")) for m in (a, b))
        product = torch.matmul(left, right).numpy()
        if scalar.is_int():
            product = product.astype(np.int64)
        return conformed(product + d.data, scalar)

    # Operations without an equivalent here.

    def create_inline_asm(self, *_: Any) -> NoReturn:
        """Refuse: the assembly is a GPU's."""
        raise UnsupportedOperationError("inline_asm_elementwise", "it is assembly of a GPU")

    def create_extern_elementwise(
        self, _library: Any, _path: Any, symbol: Any, *_: Any
    ) -> NoReturn:
        """Refuse: the library is a GPU's."""
        raise UnsupportedOperationError(str(symbol), "the library is a GPU's")


def _lanes(mask: Any, ptrs: Any) -> Any:
    """Give the active lanes; block pointers bring their mask as a bare array."""
    return np.broadcast_to(np.asarray(mask.data), ptrs.data.shape)


def _every(ptrs: Any) -> Any:
    return Handle(np.ones(ptrs.data.shape, dtype=bool), tl.int1)
