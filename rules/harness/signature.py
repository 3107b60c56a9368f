"""The arguments of a kernel, as declared by a task."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kabuild.rule import AttributeProblem, suggest

from .expressions import read_ranges
from .names import check_argument
from .tensors import Tensor, check_layout, read_tensor
from .terms import DTYPES, ONLY_GIVEN, PLAIN

_STATE_NAME = re.compile(r"\w+(\.\w+)*")
Scalar = float | int | str
"""The value of a scalar argument; ``bool`` is an ``int``."""


@dataclass(frozen=True)
class Signature:
    """The arguments of an entry, in order.

    Attributes:
        scalars: names with their defaults.
        updates: the inputs that a call changes, which are compared afterwards.
        state: tensors that are fixed for a config, such as weights.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    scalars: tuple[tuple[str, Scalar], ...]
    dims: tuple[str, ...]
    updates: tuple[str, ...] = ()
    state: tuple[Tensor, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form for the judge. Unused features are left out, so they are not in keys."""
        return {
            "inputs": [tensor.to_json() for tensor in self.inputs],
            "outputs": [tensor.to_json() for tensor in self.outputs],
            "scalars": [list(scalar) for scalar in self.scalars],
            "dims": list(self.dims),
            **({"updates": list(self.updates)} if self.updates else {}),
            **({"state": [tensor.to_json() for tensor in self.state]} if self.state else {}),
        }


def read_signature(attrs: Mapping[str, Any]) -> Signature:
    """The signature in a task's attributes. Raises AttributeProblem."""
    dims = tuple(read_ranges(attrs["dims"]))
    by_call = bool(attrs.get("call"))
    updates = tuple(attrs.get("updates") or ())
    inputs = _read_tensors("inputs", attrs["inputs"], dims, by_call=by_call, empty=by_call)
    outputs = _read_tensors("outputs", attrs["outputs"], dims, by_call=by_call, empty=bool(updates))
    read = _read_any_scalar if by_call else _read_scalar
    scalars = tuple(read(name, value) for name, value in attrs["scalars"].items())
    _refuse_clashes(
        (("inputs", attrs["inputs"]), ("outputs", attrs["outputs"])),
        (("scalars", attrs["scalars"]), ("dims", attrs["dims"])),
        (("state", attrs.get("state") or {}),),
    )
    state = _read_state(attrs.get("state") or {}, dims)
    _check_updates(updates, inputs)
    inputs, outputs = _laid_out(attrs.get("layout") or {}, inputs, outputs, dims)
    return Signature(inputs, outputs, scalars, dims, updates, state)


def _check_updates(updates: tuple[str, ...], inputs: tuple[Tensor, ...]) -> None:
    known = {tensor.name: tensor for tensor in inputs}
    for index, name in enumerate(updates):
        path = ("updates", index)
        if name not in known:
            hint = suggest(name, known) or f"inputs: {', '.join(known) or 'none'}"
            raise AttributeProblem(f"'{name}' in 'updates' is not an input", path, hint)
        if name in updates[:index]:
            raise AttributeProblem(f"'{name}' is in 'updates' twice", path)
        if known[name].dtype in ONLY_GIVEN:
            raise AttributeProblem(f"'{name}' is {known[name].dtype}: it cannot be compared", path)
        if known[name].optional:
            raise AttributeProblem(f"'{name}' is optional and cannot be updated", path)


def _read_state(declared: Mapping[str, Any], dims: tuple[str, ...]) -> tuple[Tensor, ...]:
    """The state's tensors; their names may be a module's: ``conv.weight``, ``0.weight``."""
    tensors = []
    for name, text in declared.items():
        path = ("state", name)
        if not _STATE_NAME.fullmatch(name):
            raise AttributeProblem(
                f"'{name}' is not a valid name of a state tensor",
                path,
                "write a name such as 'conv.weight'",
            )
        tensor = read_tensor(name, text, dims, path)
        if tensor.optional or tensor.count:
            raise AttributeProblem("a state tensor cannot be a list or optional", path)
        tensors.append(tensor)
    return tuple(tensors)


def _laid_out(
    layouts: Mapping[str, Any],
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    dims: tuple[str, ...],
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The tensors with their ``layout`` applied."""
    known = {tensor.name: tensor for tensor in (*inputs, *outputs)}
    of_outputs = {tensor.name for tensor in outputs}
    for name, text in layouts.items():
        path = ("layout", name)
        if name not in known:
            hint = suggest(name, known) or f"tensors: {', '.join(known)}"
            raise AttributeProblem(f"'layout' names unknown tensor '{name}'", path, hint)
        check_layout(text, known[name], dims, path, output=name in of_outputs)

    def with_layout(tensor: Tensor) -> Tensor:
        return replace(tensor, layout=layouts.get(tensor.name, ""))

    return tuple(map(with_layout, inputs)), tuple(map(with_layout, outputs))


def _read_tensors(
    attribute: str,
    declared: Mapping[str, Any],
    dims: tuple[str, ...],
    *,
    by_call: bool,
    empty: bool,
) -> tuple[Tensor, ...]:
    if not declared and not empty:
        raise AttributeProblem(f"'{attribute}' is empty: a kernel needs at least one", (attribute,))
    tensors = []
    for name, text in declared.items():
        path = (attribute, name)
        check_argument(name, "name of a tensor", path)
        tensor = read_tensor(name, text, dims, path, DTYPES if by_call else PLAIN)
        if not by_call and (tensor.count or tensor.optional):
            what = f"'{name}' is a list or optional, which a kernel's symbol cannot take"
            raise AttributeProblem(what, path, "only tasks with a 'call' have such arguments")
        if attribute == "outputs" and tensor.dtype in ONLY_GIVEN:
            raise AttributeProblem(f"outputs of {tensor.dtype} cannot be compared", path)
        if attribute == "outputs" and tensor.optional:
            raise AttributeProblem(f"output '{name}' cannot be optional", path)
        tensors.append(tensor)
    return tuple(tensors)


def _read_any_scalar(name: str, value: Any) -> tuple[str, Scalar]:
    """Read a scalar of a Python call, which may also be a bool or a string."""
    if isinstance(value, bool | str):
        check_argument(name, "name of a scalar", ("scalars", name))
        return (name, value)
    return _read_scalar(name, value)


def _read_scalar(name: str, value: Any) -> tuple[str, Scalar]:
    check_argument(name, "name of a scalar", ("scalars", name))
    if not is_number(value):
        raise AttributeProblem(
            f"the default of scalar '{name}' must be a number, got {value!r}",
            ("scalars", name),
            "write scalars = { eps = 1e-5 }",
        )
    return (name, value)


def is_number(value: Any) -> bool:
    """Whether a value fits a C ``int64_t`` or a finite ``float``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)


def _refuse_clashes(*groups: tuple[tuple[str, Mapping[str, Any]], ...]) -> None:
    """Refuse a name that two arguments share."""
    seen: dict[str, str] = {}
    for attribute, declared in (pair for group in groups for pair in group):
        for name in declared:
            if name in seen:
                raise AttributeProblem(
                    f"'{name}' is declared twice: in '{seen[name]}' and in '{attribute}'",
                    (attribute, name),
                )
            seen[name] = attribute
