"""AutoKernel: ``kernel_fn(**inputs)``, with the inputs and references of its ``bench.py``.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.functions import Values
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "MIT", "redistribute": True}
MARK = "bench.py"

_SHOWN = "large"
"""The size that AutoKernel reports."""

_LANGUAGES = {"triton": "kernels", "cuda": "kernels/cuda"}
TASKS = tuple(f"{home}/[!_]*.py" for home in _LANGUAGES.values())
_DTYPES = {"torch.float16": "f16", "torch.bfloat16": "bf16", "torch.float32": "f32"}
_SHARED = ["bench.py", "reference.py"]
Table = dict[str, Any]


def task(checkout: Any, path: str) -> Table:
    """One starter, by language and operation."""
    del checkout
    home, _, file = path.rpartition("/")
    language = next(name for name, known in _LANGUAGES.items() if known == home)
    name = f"{language}/{file.removesuffix('.py')}"
    return {"name": name, "files": [path, *_SHARED], "tags": [language]}


def capture(name: str, files: Sequence[str]) -> Table:
    """The facts of a task for the lock. Raises LeftOutError."""
    from imported.boundary import LeftOutError, needing_packages, sources
    from imported.constants import read_module
    from imported.functions import learn

    language, _, operation = name.partition("/")
    if language == "cuda":
        what = "its starter compiles CUDA C++ with nvcc and a GPU's architecture while it runs"
        raise LeftOutError("NEEDS_GPU", what)
    bench = needing_packages(_bench)
    if operation not in bench.KERNEL_CONFIGS:
        raise LeftOutError("NO_ENTRY", f"bench.py has no '{operation}' in KERNEL_CONFIGS")
    tested = bench.KERNEL_CONFIGS[operation]
    sizes = dict(tested["test_sizes"])
    settings = [sizes[_SHOWN], *(s for n, s in sizes.items() if n != _SHOWN)]

    smallest = _call(bench, operation, min(settings, key=lambda s: sum(s.values())), "cpu")
    constant = {name for name, tensor in smallest.items() if tensor.unique().numel() == 1}

    def call(moved: Mapping[str, int], device: str) -> tuple[Values, list[Tensor]]:
        values = _call(bench, operation, {**settings[0], **moved}, device)
        return values, [tensor for name, tensor in values.items() if name not in constant]

    learnt = learn(_function(bench, operation), call, settings[0], "kernel_fn", keywords=True)
    return {
        "origin": read_module(HERE / "original" / files[0], functions=(), of="").origin,
        "attrs": {
            **learnt.declared(settings),
            **sources("autokernel", files),
            "adapter": "//rules/imports/tools/imported/stand_in.py",
            "dtypes": [_DTYPES[str(kind)] for kind in tested["test_dtypes"]],
            "parameters": learnt.parameters(settings[0], operation=operation),
            "brief": f"Write a function kernel_fn that computes what the one of {files[0]} does, "
            f"from the same arguments, and is faster. (AutoKernel, {name})",
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of a call, from the original's own function under a seed."""
    from imported.functions import inputs_of

    return _drawn(config, generator, inputs_of)


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights that the original leaves constant, moved."""
    from imported.functions import state_of

    return _drawn(config, generator, state_of)


def reference(**given: Any) -> Table:
    """What the original's reference computes, in the precision of its inputs."""
    from imported.functions import run, sized

    told, bench = _told(), _bench()
    values = _call(bench, told["operation"], sized(told, given), "meta")
    function = _function(bench, told["operation"])
    return run(function, values, {**given, **given.get("state", {})}, told)


def _drawn(
    config: Mapping[str, Any],
    generator: Generator,
    part: Callable[[Values, Table], dict[str, Tensor]],
) -> dict[str, Tensor]:
    from imported.functions import sized
    from imported.modules import under_seed

    told, device = _told(), str(generator.device)
    settings, bench, kind = sized(told, config), _bench(), config["dtype"]

    def draw() -> dict[str, Tensor]:
        return part(_call(bench, told["operation"], settings, device, kind), told)

    return under_seed(generator, draw)


def _call(
    bench: ModuleType, operation: str, settings: Mapping[str, int], device: str, kind: Any = None
) -> Values:
    """The arguments of one call, under the seed of the global generator."""
    import torch

    generate: Callable[..., Values] = bench.KERNEL_CONFIGS[operation]["input_generator"]
    seed = torch.initial_seed() % 2**31
    return generate(dict(settings), kind or torch.float32, device, seed)


def _function(bench: ModuleType, operation: str) -> Callable[..., Any]:
    compute: Callable[[Values], Any] = bench.KERNEL_CONFIGS[operation]["reference_fn"]
    return lambda **values: compute(values)


def _told() -> Table:
    told: Table = json.loads((HERE / "parameters.json").read_text())
    return told


def _bench() -> ModuleType:
    """AutoKernel's ``bench.py``, which imports its ``reference.py``."""
    from imported.original_code import load_modules

    return load_modules(HERE / "original", reversed(_SHARED))
