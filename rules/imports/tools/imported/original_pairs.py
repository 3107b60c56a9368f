"""A module and its form that calls a function: the original's own code, and its own check.

The check loads a compiled function and calls the functional form with it, with the weights of the
module, whose results are what is right. Here a candidate is in that function's place.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from imported.boundary import returned
from imported.functions import Values, listen, result_name, tensors
from imported.original_code import definitions, on
from imported.original_functions import Answer, cloned
from imported.script_setting import salted
from imported.seeding import seed_all

_CHECK, _INPUTS, _INIT = "correctness_check", "get_inputs", "get_init_inputs"
_BUILDERS = ("load_modu_obj", "load_func_obj")
_ALIGNING = ("_align_state_dict", "_canonical_key", "_candidate_module_keys")
_COMPARING = ("_compare_results", "_normalize_get_inputs_result")
_FILES = types.SimpleNamespace(copy=lambda *_: None)
_PATHS = types.SimpleNamespace(path=os.path, makedirs=lambda *_, **__: None)

Names = Mapping[str, Any]
Seeds = Mapping[str, int]


class Pair:
    """The names of a module and of its functional form, and the check that compares them.

    Both have the sizes of one config. Of their cases of inputs, the last counts.
    """

    def __init__(self, module: Names, functional: Names, kind: str, check: Path) -> None:
        self._names = {"module": module, "functional": functional}
        self._kind = kind
        self._path = check

    def original(
        self, function: Callable[..., Any], told: Mapping[str, Any], seeds: Seeds
    ) -> dict[str, Any]:
        """What the original draws under these seeds, and what its module computes.

        A result is missing where calls change their inputs: a module changes others.

        Raises LookupError.
        """
        check = self._check(function, [])
        drawn, values = self._values(check, function, seeds["inputs"])
        found = {name: tensor.detach().clone() for name, tensor in tensors(values).items()}
        parts = {"inputs": {name: found[name] for name in told["inputs"]}}
        torch.manual_seed(seeds["state"])
        form, module = (check[name](*self._place(name)) for name in _BUILDERS[::-1])
        weights = tensors(self._passed(form, function, drawn))
        parts["state"] = {name: weights[name].detach().clone() for name in told["state"]}
        if told["updates"] or told["passed"]:
            return parts
        aligned, said = check["_align_state_dict"](form, module)
        if not aligned:
            raise LookupError(f"the original's check finds no weights for its module: {said}")
        torch.manual_seed(0)
        with torch.no_grad():
            result = module.eval()(*cloned(drawn))
        return {**parts, "results": returned(result, result_name(values))[1]}

    def checked(self, function: Callable[..., Any], seed: int, answer: Answer) -> str:
        """The complaint of the check about a candidate; "" if it passes."""
        said: list[str] = []
        check = self._check(answer(function), said)
        seed_all(seed)
        with on(str(torch.get_default_device())), salted(), torch.no_grad():
            good = check[_CHECK]("module", "functional", f"hip_0_{self._kind}.hip")
        return "" if good else (said or ["it fails"])[-1][:300]

    def _check(self, candidate: Callable[..., Any], said: list[str]) -> dict[str, Any]:
        """The check's own functions; it writes no files, and says ``said``."""
        given = {
            "load_function_from_path": self._named,
            "load_hip_kernel": lambda *_: candidate,
            "clear_workdir": lambda *_: None,
            "_write_correctness_report": lambda report: said.append(report["message"]),
            "print": lambda *_: None,
            "shutil": _FILES,
            "os": _PATHS,
        }
        return definitions(self._path, (_CHECK, *_BUILDERS, *_ALIGNING, *_COMPARING), given)

    def _named(self, path: str, name: str) -> Any:
        names = self._names[path]
        return names[name] if name != _INPUTS else lambda: _last(names[_INPUTS]())

    def _place(self, builder: str) -> tuple[str, str, str]:
        return ("module" if "modu" in builder else "functional", self._kind, _INIT)

    def _values(
        self, check: Names, function: Callable[..., Any], seed: int
    ) -> tuple[list[Any], Values]:
        """The last case under a seed, and the arguments that the functional form makes of it."""
        torch.manual_seed(seed)
        form = check["load_func_obj"](*self._place("load_func_obj"))
        (drawn,) = _last(self._names["functional"][_INPUTS]())
        return drawn, self._passed(form, function, drawn)

    def _passed(self, form: nn.Module, function: Callable[..., Any], drawn: list[Any]) -> Values:
        form.eval()
        return listen(function, lambda stand_in: form(*drawn, fn=stand_in))


def _last(cases: Any) -> Iterator[list[Any]]:
    """The last case of inputs, which is drawn when it is asked for."""
    found = cases if isinstance(cases, list | tuple) else [*cases][-1]
    yield [found] if isinstance(found, Tensor) else [*found]
