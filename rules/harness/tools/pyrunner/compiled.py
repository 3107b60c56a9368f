"""Programs compiled by ``torch.compile``: the baselines of PyTorch's tasks.

Several processes compile one baseline, at once and one after the other, with one cache.
"""

from __future__ import annotations

import fcntl
import functools
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from base.program import Program

from pyrunner.module import Entry

_CACHE = "TORCHINDUCTOR_CACHE_DIR"
_TURN = "turn.lock"
_TUNED = "found_by_coordesc"
_WITHOUT_GRAPHS = ("default", "max-autotune-no-cudagraphs")


def compiled(program: Program, entry: Entry) -> Entry:
    """The entry, compiled by ``torch.compile`` if the program names one of its modes."""
    if not program.mode:
        return entry
    keep_tuned()
    measure_alone()
    made: Entry = torch.compile(entry, mode=program.mode, dynamic=False)
    return made if program.mode in _WITHOUT_GRAPHS else _copied(made)


def keep_tuned() -> None:
    """Have copies of Triton's configs say, too, that Inductor has tuned them.

    Triton's own copies lose that. What Inductor takes from its cache is a copy, and each process
    would tune it again, for seconds, to other variants than the last one.
    """
    config = importlib.import_module("triton.runtime.autotuner").Config
    plain = getattr(config, "__setstate__", None)
    if plain is None or hasattr(plain, _TUNED):
        return

    def restore(self: Any, state: dict[str, Any]) -> None:
        plain(self, state)
        if _TUNED in state:
            setattr(self, _TUNED, state[_TUNED])

    setattr(restore, _TUNED, True)
    config.__setstate__ = restore


def measure_alone() -> None:
    """Have Inductor measure variants only while no other process with this cache does."""
    benchmarker = importlib.import_module("torch._inductor.runtime.benchmarking").benchmarker
    plain = benchmarker.benchmark_gpu
    folder = Path(os.environ[_CACHE])
    folder.mkdir(parents=True, exist_ok=True)
    turn = (folder / _TURN).open("ab")  # for the life of the process

    measuring = 0  # one measurement may begin another one

    @functools.wraps(plain)
    def alone(*given: Any, **named: Any) -> Any:
        nonlocal measuring
        if not measuring:
            fcntl.flock(turn, fcntl.LOCK_EX)
        measuring += 1
        try:
            return plain(*given, **named)
        finally:
            measuring -= 1
            if not measuring:
                fcntl.flock(turn, fcntl.LOCK_UN)

    benchmarker.benchmark_gpu = alone


def _copied(made: Entry) -> Entry:
    """The entry with copied results: each run of a compiled graph overwrites the last results."""

    begin: Callable[[], None] = torch.compiler.cudagraph_mark_step_begin

    def call(**arguments: Any) -> Any:
        begin()
        return {name: result.clone() for name, result in made(**arguments).items()}

    return call
