"""KernelBench's own code for one task, and its own check."""

from __future__ import annotations

import contextlib
import io
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from imported.boundary import returned
from imported.constants import read_module, with_dims
from imported.models import INIT, INPUTS
from imported.modules import build, tensors_at
from imported.original_code import definitions, on

TRIALS = 5
"""What the benchmark's own scripts ask for."""

_CHECK = "run_and_check_correctness"
_NEEDED = (
    _CHECK,
    "set_seed",
    "get_tolerance_for_precision",
    "get_torch_dtype_from_string",
    "_process_input_tensor",
    "register_and_format_exception",
    "get_error_name",
)
Names = Mapping[str, Any]


def read_original(path: Path, members: Mapping[str, Any], config: Mapping[str, Any]) -> Names:
    """The names of the module at ``path``; sizes that are not its own are written into its text."""
    module = read_module(path, functions=(INPUTS, INIT), of="Model")
    text = module.written(with_dims(module.values, members, config))
    names: dict[str, Any] = {"__name__": "original_task"}
    exec(compile(text, path, "exec"), names)  # noqa: S102 - the benchmark's code
    return names


def original(names: Names, paths: Mapping[str, Any], seeds: Mapping[str, int]) -> dict[str, Any]:
    """The original's draws under these seeds, and its results: inputs, state and results."""
    torch.manual_seed(seeds["inputs"])
    arguments = names[INPUTS]()
    torch.manual_seed(seeds["state"])
    model = build(names["Model"], names[INIT]())
    state = {name: value.detach().clone() for name, value in model.state_dict().items()}
    inputs = {name: value.clone() for name, value in tensors_at(arguments, paths).items()}
    torch.manual_seed(0)
    with torch.no_grad():
        results = returned(model(*arguments))[1]
    return {"inputs": inputs, "state": state, "results": results}


def original_check(
    check: Path, names: Names, seed: int, answer: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> str:
    """What the benchmark's check says of a candidate in its own process; "" where it passes."""
    known = definitions(check, _NEEDED, {"KernelExecResult": types.SimpleNamespace})
    torch.manual_seed(seed)
    model = build(names["Model"], names[INIT]())
    torch.manual_seed(seed)
    new = build(names["Model"], names[INIT]())
    new.forward = answer(new.forward)
    device = torch.get_default_device()
    with on(str(device)), contextlib.redirect_stdout(io.StringIO()):
        said = known[_CHECK](model, new, names[INPUTS], {}, TRIALS, seed=seed, device=device)
    if said.correctness:
        return ""
    told = {k: v for k, v in said.metadata.items() if not k.endswith("traceback")}
    return "; ".join(f"{key}: {value}" for key, value in told.items())[:300] or "it fails"
