"""Serves the process with the candidate's module, in the process with the memory."""

from __future__ import annotations

import base64
from typing import Any

import torch
from torch import Tensor
from triton_cpu.bounds import Allocation
from triton_cpu.library import Library
from triton_cpu.plain import MalformedError

from triton_apart.operators import MOST_READ
from triton_apart.territory import Territory, flat

_DTYPES = {
    name: getattr(torch, name)
    for name in (
        "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
        "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
        "float8_e4m3fnuz", "float8_e5m2fnuz",
    )
}  # fmt: skip


class DeviceWork:
    """Serves one candidate's process. Its requests may be hostile, so all are checked.

    Attributes:
        legal: the judge's tensors that the current call may use.
    """

    def __init__(self, territory: Territory, library: Library) -> None:
        self._territory = territory
        self._library = library
        self._read = 0
        self.legal: list[Allocation] = []
        library.heap = territory.allocated

    def begin(self, legal: list[Allocation]) -> None:
        """Begin a call that may use the judge's tensors ``legal``; an empty list ends it."""
        self.legal = legal
        self._read = 0

    def obey(self, verb: object, arguments: list[Any]) -> Any:
        """Serve one request. Raises MalformedError, MemoryError, and a kernel's exceptions."""
        match verb, arguments:
            case "define", [int(number), [str(file), int(line), str(name)], dict(names), constant]:
                where = file, line, name
                self._library.define(number, where, names, constant=constant is True)
            case "launch", [int(number), list(grid), dict(values), list(constants)]:
                self._library.launch(number, tuple(grid), values, constants)
            case "commit", [int(end)]:
                self._territory.commit(end)
            case "fill", [list(spec), int() | float() as value]:
                self._tensor(spec).fill_(value)
            case "copy", [list(target), list(source)]:
                self._copy(self._tensor(target), self._tensor(source))
            case "read", [list(spec)]:
                return self._item(self._tensor(spec))
            case "write", [int(address), str(text)]:
                self._write(address, base64.b64decode(text))
            case _:
                raise MalformedError(f"request {str(verb)[:40]}")
        return None

    def _copy(self, target: Tensor, source: Tensor) -> None:
        single = all(
            not step or n == 1 for n, step in zip(source.shape, source.stride(), strict=True)
        )
        if source.dtype != target.dtype and not single:
            raise MalformedError("a copy that converts")
        target.copy_(source)

    def _item(self, tensor: Tensor) -> Any:
        self._read += 1
        if tensor.numel() != 1:
            raise MalformedError("a read of more than one element")
        return tensor.item() if self._read <= MOST_READ else None

    def _write(self, address: int, data: bytes) -> None:
        if data:
            self._check(address, len(data))
            flat(address, len(data)).copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def _tensor(self, spec: list[Any]) -> Tensor:
        match spec:
            case [int(address), str(name), list(shape), list(strides)] if name in _DTYPES:
                dtype = _DTYPES[name]
            case _:
                raise MalformedError("a malformed tensor")
        if len(shape) != len(strides) or len(shape) > 32:
            raise MalformedError("a malformed tensor")
        pairs = list(zip(shape, strides, strict=True))
        if any(type(n) is not int or type(s) is not int or n < 1 or s < 0 for n, s in pairs):
            raise MalformedError("a malformed tensor")
        size = (sum((n - 1) * step for n, step in pairs) + 1) * dtype.itemsize
        self._check(address, size)
        return flat(address, size).view(dtype).as_strided(shape, strides)

    def _check(self, address: int, size: int) -> None:
        """Raise MalformedError for memory that this call may not use."""
        for known in (*self.legal, self._territory.allocated()):
            if known.start <= address and address + size <= known.end:
                return
        raise MalformedError("an access to the memory of another call")
