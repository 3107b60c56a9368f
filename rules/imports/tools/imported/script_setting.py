"""Where scripts of a benchmark run: as on a GPU, with the judge's seeds, without kernels."""

from __future__ import annotations

import contextlib
import random
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch

from imported.seeding import seed_torch


def no_launch(function: Any = None, *_: Any, **__: Any) -> Any:
    """In the place of ``triton.jit`` and what wraps it: a kernel whose launches do nothing."""
    if not callable(function):
        return no_launch
    return function if isinstance(function, Idle) else Idle(function)


class Idle:
    """A kernel whose launches do nothing; ``fn`` is its function."""

    def __init__(self, function: Any) -> None:
        self.fn = function

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """A launch that does nothing."""
        return lambda *_, **__: None

    def __call__(self, *_: Any, **__: Any) -> Any:
        """A call by the host, as of a device function."""


@contextlib.contextmanager
def salted() -> Iterator[None]:
    """Seeds that the script sets are mixed with that of the global generator."""
    salt = torch.initial_seed() % 2**31
    numbers, arrays, states = random.seed, np.random.seed, np.random.RandomState

    def seed(value: int = 0) -> Any:
        return seed_torch(value ^ salt)

    with (
        mock.patch.object(torch, "manual_seed", seed),
        mock.patch.object(random, "seed", lambda value=0: numbers(value ^ salt)),
        mock.patch.object(np.random, "seed", lambda value=0: arrays((value ^ salt) % 2**32)),
        mock.patch.object(np.random, "RandomState", lambda s=0: states((s ^ salt) % 2**32)),
    ):
        yield


def by_default_on_the_cpu(device: str) -> contextlib.AbstractContextManager[Any]:
    """Tensors of no named device are made on the CPU, as for a script run by itself.

    A judge of a GPU makes its own there. Without data, all tensors are on one device.
    """
    plain = device == "meta" or torch.get_default_device().type == "cpu"
    return contextlib.nullcontext() if plain else torch.device("cpu")


@contextlib.contextmanager
def as_on_a_gpu(device: str) -> Iterator[None]:
    """Stands in for a GPU that scripts ask for."""
    if device.startswith("cuda"):
        yield
        return
    import triton

    target = types.SimpleNamespace(backend="cpu", arch=0, warp_size=32)
    active = types.SimpleNamespace(
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        get_active_torch_device=lambda: torch.device("cpu"),
    )
    driver = mock.patch.object(type(triton.runtime.driver), "active", active)
    with driver, tensors_on_a_gpu(device):
        yield


@contextlib.contextmanager
def tensors_on_a_gpu(device: str) -> Iterator[None]:
    """Where tensors say that they are on a GPU, and PyTorch that there is one."""
    if device.startswith("cuda"):
        yield
        return
    like = types.SimpleNamespace(
        multi_processor_count=4, name="cpu", major=9, minor=0, total_memory=1 << 34, gcnArchName=""
    )
    idle = lambda *_, **__: None  # noqa: E731
    on_one = mock.patch.object(torch.Tensor, "is_cuda", property(lambda _: True), create=True)
    asked = mock.patch.multiple(
        torch.cuda,
        synchronize=idle,
        is_available=lambda: True,
        current_device=lambda: 0,
        manual_seed=idle,
        manual_seed_all=idle,
        empty_cache=idle,
        get_device_properties=lambda *_: like,
        get_device_capability=lambda *_: (9, 0),
        device=lambda *_: contextlib.nullcontext(),
    )
    # Without a GPU, PyTorch keeps a trace of each seed for it.
    with on_one, asked, mock.patch.object(torch.xpu, "manual_seed_all", idle):
        yield
