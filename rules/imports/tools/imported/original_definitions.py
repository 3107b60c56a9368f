"""The checks of benchmarks whose tasks are definitions, run as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from imported.definition import Definition, Table
from imported.original_code import definitions, on
from imported.original_functions import Answer

ROUNDS = 10
"""How often SOL-ExecBench's driver draws inputs and compares, for each workload."""

_OUTCOMES = ("RUNTIME_ERROR", "INCORRECT_SHAPE", "INCORRECT_DTYPE", "INCORRECT_NUMERICAL")
_UNUSED = (
    *("Definition", "Workload", "ResolvedEvalConfig", "DeviceBaseline", "BaselineHandle"),
    *("Runnable", "Evaluation", "Performance", "load_safetensors", "time_runnable"),
    *("BuilderRegistry", "allocate_outputs", "gen_inputs"),
)
"""Names in the check's modules that a comparison does not use, or that are replaced."""


@dataclass(frozen=True)
class Question:
    """What a candidate is asked.

    Attributes:
        names: those of the reference's module.
        tolerance: what a workload changes of the benchmark's own.
        draw: new inputs on a device.
    """

    definition: Definition
    names: Table
    tolerance: Table
    draw: Callable[[str], Sequence[Any]]

    def right(self, *given: Any) -> tuple[Any, ...]:
        """The reference's results in order."""
        return (*self.definition.function(self.names)(*given).values(),)


def checked_rounds(check: Path, workloads: Path, asked: Question, seed: int, answer: Answer) -> str:
    """The complaint of SOL-ExecBench's comparison about a candidate; "" if it passes.

    The module ``workloads`` has the tolerance that a workload may change.
    """
    needed = ("set_seed", "check_tensor_sanity", "compute_error_stats")
    known = definitions(check, needed, {"Correctness": SimpleNamespace, "ToleranceSpec": object})
    model = {"BaseModelWithDocstrings": object, "Field": lambda default: default}
    allowed = definitions(workloads, ("ToleranceSpec",), model)["ToleranceSpec"]()
    vars(allowed).update(asked.tolerance)
    device, candidate = str(torch.get_default_device()), answer(asked.right)
    known["set_seed"](seed)
    for _ in range(ROUNDS):
        given = asked.draw(device)
        pairs = zip(asked.right(*given), candidate(*given), strict=True)
        for name, (wanted, got) in zip(asked.definition.outputs, pairs, strict=True):
            said, exceeds = known["compute_error_stats"](got, wanted, allowed)
            if exceeds:
                return f"'{name}' differs: {vars(said)}"
    return ""


def checked_by_evaluator(bench: Path, asked: Question, seed: int, answer: Answer) -> str:
    """The complaint of FlashInfer-Bench's default evaluator about a candidate; "" if it passes."""
    model = {"BaseModel": object, "Field": lambda **_: None}
    kind = "ResolvedEvalConfig"
    settings = definitions(bench / "config.py", (kind,), model)[kind]()
    unused = dict.fromkeys(_UNUSED)
    results = definitions(bench / "evaluators/utils.py", ("normalize_result",), unused)
    numbers = definitions(bench / "utils.py", ("compute_error_stats",), unused)
    given: Table = {
        **unused,
        "Evaluator": object,
        "Correctness": SimpleNamespace,
        "EvaluationStatus": SimpleNamespace(**{name: name for name in _OUTCOMES}),
        "make_eval": lambda status, **_: status,
        "normalize_result": results["normalize_result"],
        "compute_error_stats": numbers["compute_error_stats"],
    }
    known = definitions(bench / "evaluators/default.py", ("DefaultEvaluator",), given)
    device = str(torch.get_default_device())
    types = [one.dtype for one in asked.definition.outputs.values()]
    told = SimpleNamespace(torch_output_dtypes=types)
    torch.manual_seed(seed)
    drawn = [asked.draw(device) for _ in range(settings.num_trials)]
    expected = [results["normalize_result"](told, asked.right(*one), device) for one in drawn]
    candidate: Any = answer(asked.right)
    candidate.metadata = SimpleNamespace(destination_passing_style=False)
    with on(device):
        errors, said = known["DefaultEvaluator"].check_correctness(
            told, candidate, drawn, expected, settings, "", device
        )
    return "" if said is None else f"{said}: {vars(errors) if errors else 'it failed'}"
