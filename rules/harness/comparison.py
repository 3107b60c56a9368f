"""The attribute ``compare`` of a task, checked when the task is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kabuild.rule import AttributeProblem, suggest

from .signature import Signature
from .tensors import Tensor
from .terms import INTEGERS, SEEDS, STEPPED

KINDS = ("elementwise", "exact", "quantised", "sorted", "topk_indices", "sampled")
_TEXT = re.compile(r"(\w+)(?:\(\s*(\w+)\s*\))?")


def check_compare(declared: Mapping[str, Any], signature: Signature) -> None:
    """Refuse comparisons that the judge does not support. Raises AttributeProblem."""
    outputs = {tensor.name: tensor for tensor in signature.outputs}
    inputs = {tensor.name: tensor for tensor in signature.inputs}
    for name, text in declared.items():
        path = ("compare", name)
        if name not in outputs:
            hint = suggest(name, outputs) or f"outputs: {', '.join(outputs)}"
            raise AttributeProblem(f"'{name}' is not an output", path, hint)
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None or match[1] not in KINDS:
            hint = suggest(str(text), KINDS) or f"known: {', '.join(KINDS)}"
            raise AttributeProblem(f"unknown comparison {text!r}", path, hint)
        if match[1] == "quantised" and outputs[name].dtype not in STEPPED:
            raise AttributeProblem(
                f"'{name}' is {outputs[name].dtype}, which cannot be quantised",
                path,
                f"quantised outputs are {', '.join(STEPPED)}",
            )
        if match[1] == "topk_indices":
            _check_choice(outputs[name], inputs.get(match[2] or ""), path)
        elif match[1] == "sampled":
            _check_seed(match[2] or "", inputs, path)
        elif match[2]:
            raise AttributeProblem(f"'{match[1]}' takes no argument", path)


def _check_choice(indices: Tensor, values: Tensor | None, path: tuple[str, str]) -> None:
    if values is None:
        raise AttributeProblem(
            "'topk_indices' needs the name of the input that the indices refer to",
            path,
            f"write {path[1]} = 'topk_indices(x)'",
        )
    if indices.dtype not in INTEGERS:
        raise AttributeProblem(
            f"'{indices.name}' is {indices.dtype}, but indices are integers", path
        )
    if indices.shape[:-1] != values.shape[:-1]:
        raise AttributeProblem(
            f"'{indices.name}' and '{values.name}' differ before the last axis", path
        )


def _check_seed(seed: str, inputs: Mapping[str, Tensor], path: tuple[str, str]) -> None:
    seeds = [name for name, tensor in inputs.items() if tensor.dtype in SEEDS]
    hint = f"inputs of such a dtype: {', '.join(seeds)}" if seeds else "declare seed = 'i64[1]'"
    if seed not in inputs:
        raise AttributeProblem(
            "'sampled' needs the name of the input that holds the seed",
            path,
            f"write {path[1]} = 'sampled({seeds[0] if seeds else 'seed'})'",
        )
    if seed not in seeds:
        wanted = " or ".join(SEEDS)
        raise AttributeProblem(f"'{seed}' is {inputs[seed].dtype}: a seed is {wanted}", path, hint)
