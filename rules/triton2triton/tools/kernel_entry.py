"""Checks that a module has the function that the harness calls, with suitable parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from kernel_source import Refusal, Source
from terms.reasons import Reason


def find_entry(source: Source, name: str, signature: Mapping[str, Any]) -> ast.FunctionDef:
    """Give the last top-level definition of `name`, checked against the task's signature.

    The harness calls it with the tensors (inputs, then outputs) by position, the scalars and dims
    by keyword. Raises Refusal if it is missing or cannot be called so.
    """
    tensors = [argument[0] for argument in (*signature["inputs"], *signature["outputs"])]
    keywords = [scalar[0] for scalar in signature["scalars"]] + list(signature["dims"])
    wanted = f"def {name}({', '.join([*tensors, '*', *keywords])})"
    found = [
        node
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    if not found:
        raise Refusal(
            Reason.MISSING_ENTRY, f"{source.name}: no function '{name}'", f"expected: {wanted}"
        )
    entry = found[-1]
    problem = (
        "must not be async"
        if isinstance(entry, ast.AsyncFunctionDef)
        else _mismatch(entry.args, tensors, keywords)
    )
    if problem:
        refusal = source.refuse(entry, Reason.MISSING_ENTRY, f"'{name}' {problem}")
        raise Refusal(refusal.reason, refusal.summary, f"expected: {wanted}")
    assert isinstance(entry, ast.FunctionDef)
    return entry


def _mismatch(arguments: ast.arguments, tensors: list[str], keywords: list[str]) -> str:
    """Say why a call by the harness would fail; empty when it would not."""
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if positional[: len(tensors)] != tensors:
        return f"must take the tensors ({', '.join(tensors)}) by position"
    rest = positional[len(tensors) :]
    unnamed = rest[: max(len(arguments.posonlyargs) - len(tensors), 0)]
    named = set(rest) - set(unnamed) | {argument.arg for argument in arguments.kwonlyargs}
    missing = [name for name in keywords if name not in named]
    if missing and arguments.kwarg is None:
        return f"must take '{missing[0]}' by keyword"
    for name in _required(arguments):
        if name not in tensors and name not in keywords:
            return f"takes '{name}', which the task does not have"
    if unnamed:
        return f"must take '{unnamed[0]}' by keyword"
    return ""


def _required(arguments: ast.arguments) -> list[str]:
    """Name the parameters without a default."""
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    needed = positional[: len(positional) - len(arguments.defaults)]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return needed + [argument.arg for argument, default in keyword_only if default is None]
