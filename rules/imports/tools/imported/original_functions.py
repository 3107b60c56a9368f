"""The original's own code and check where the boundary is a function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from imported.boundary import returned
from imported.devices import FilledMemory
from imported.functions import Told, Values, result_name, sized, tensors
from imported.original_code import definitions, on
from imported.problems import SEEDS

Answer = Callable[[Callable[..., Any]], Callable[..., Any]]
_TRIALS = "check_forward_correctness"


def cloned(value: Any) -> Any:
    """The same value with copies of its tensors."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: cloned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(cloned(item) for item in value)
    return value


def results_of(function: Callable[..., Any], values: Values, told: Told) -> dict[str, Tensor]:
    """What the original returns, and leaves in what it changes, by the names of a declaration."""
    copies = cloned(dict(values))
    torch.manual_seed(0)
    with torch.no_grad():
        found = function(**copies)
    left = tensors(copies)
    changed = {name: left[name] for name in (*told["passed"], *told["updates"])}
    if not told["returned"] or told["passed"]:
        return changed
    return {**returned(found, told.get("unread") or result_name(values))[1], **changed}


def drawn_data(module: Any, config: Values, seed: int, told: Told) -> dict[str, Any]:
    """What a problem's own code draws under ``seed``, and computes: inputs, state and results."""
    with on(str(torch.get_default_device())), FilledMemory():
        torch.manual_seed(seed)  # some data is drawn without the problem's generator
        data = module.generate_input(**sized(told, config), seed=seed % SEEDS)
    found = tensors({"data": cloned(data)})
    results = results_of(module.ref_kernel, {"data": data}, told)
    return {"inputs": {n: found[n] for n in told["inputs"]}, "state": {}, "results": results}


def checked_data(module: Any, config: Values, seed: int, told: Told, answer: Answer) -> str:
    """The complaint of ``check_implementation`` of a problem about a candidate; "" if it passes."""
    settings = {**sized(told, config), "seed": seed % SEEDS}
    with on(str(torch.get_default_device())):
        torch.manual_seed(settings["seed"])
        data = module.generate_input(**settings)
        output = answer(module.ref_kernel)(cloned(data))
        said = module.check_implementation(data, output)
    return complaint(said)


def complaint_of_properties(module: Any, inputs: Values, outputs: Values) -> str:
    """The complaint of a problem's check of properties about results; "" for none."""
    results = tuple(outputs[name] for name in sorted(outputs))
    given = [value for value in inputs.values() if isinstance(value, Tensor)]
    return complaint(
        module.check_implementation(*given, results if len(results) > 1 else results[0])
    )


def complaint(said: Any) -> str:
    """What a check's answer complains of; "" for nothing.

    Checks return whether the result is right, that and a text, or the text alone.
    """
    if isinstance(said, str):
        return said[:300]
    good, why = said if isinstance(said, tuple) else (bool(said), "")
    return "" if good else str(why)[:300] or "it fails"


def checked_trials(
    check: Path, utilities: Path, names: Values, settings: tuple[Values, Values], answer: Answer
) -> str:
    """The complaint of robust-kbench's forward check about a candidate; "" if it passes.

    ``settings`` are those of the inputs and of the model.
    """
    device = str(torch.get_default_device())
    given = {"graceful_eval_cleanup": lambda **_: None, "TestEvalResult": dict}
    helpers = definitions(utilities, ("set_seed", "easy_to_device"), {})
    known = definitions(check, (_TRIALS,), {**helpers, **given})
    with on(device):
        said = known[_TRIALS](
            names["Model"],
            names["forward_fn"],
            answer(names["forward_fn"]),
            names["get_inputs"],
            *settings,
        )
    return "" if said["correct"] else f"max_diff: {said['max_diff']:.4g}"
