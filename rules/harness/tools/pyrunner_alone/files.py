"""A call whose tensors come from files, on the device of this process."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable

import torch
from gpu.driver import chosen
from pyrunner_device.device import Device
from torch import Tensor


class Files(Device):
    """The ``Ground`` of a call from files: what lies in no file is uninitialised."""

    def shared(self, fd: int, size: int) -> Callable[[int, int, torch.dtype], Tensor]:
        """Return a function for views of a copy of the file behind ``fd``; closes ``fd``."""
        flat = torch.empty(size, dtype=torch.uint8, device=chosen().torch_device)
        if held := min(size, os.fstat(fd).st_size):
            content = mmap.mmap(fd, held, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
            flat[:held].copy_(torch.frombuffer(content, dtype=torch.uint8, count=held))
        os.close(fd)

        def view(first: int, count: int, kind: torch.dtype) -> Tensor:
            return flat[first : first + count * kind.itemsize].view(kind)

        return view
