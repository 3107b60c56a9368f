"""The specification of a judging gate: ``spec.json``, validated."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from terms.dtypes import DTYPES, ELEMENT

from base import shapes
from base.program import Abi, Argument, Config, Program, Scalar, Signature
from base.scalar_ranges import Ranges, shown

_ABIS: tuple[Abi, ...] = ("hip", "python", "torch", "call")
_ELEMENTS = {"hip": 65536, "torch": 65536, "python": 4096, "call": 1 << 18}
# A dim is often a grid dimension: a program takes the interpreter about 1 ms, and a block with
# barriers takes HIP on the host 0.1 ms.
_EXTENTS = {"hip": 8192, "torch": 8192, "python": 1024, "call": 8192}
_UNCAPPED = 1 << 28

Policy = TypeVar("Policy")


class SpecError(ValueError):
    """``spec.json`` is malformed, a bug of its writer; nothing was judged."""


@dataclass(frozen=True)
class Space:
    """The shape space: inclusive bounds of each dim, the element types, and conditions.

    Attributes:
        scalars: inclusive bounds of the scalars that are not the usual ones in drawn configs.
    """

    dims: Mapping[str, tuple[int, int]]
    dtypes: tuple[str, ...]
    where: tuple[str, ...] = ()
    scalars: Ranges = field(default_factory=dict)

    def contains(self, dims: Mapping[str, int]) -> bool:
        """Whether ``dims`` names exactly the space's dims, within bounds and conditions."""
        return self.bounds(dims) and all(shapes.holds(text, dims) for text in self.where)

    def bounds(self, dims: Mapping[str, int]) -> bool:
        """Whether ``dims`` names exactly the dims of the space, each within its bounds."""
        return dims.keys() == self.dims.keys() and all(
            low <= dims[name] <= high for name, (low, high) in self.dims.items()
        )


QUANTISED = "quantised"
"""How an output is compared that may be rounded by its kernel (``truth/comparison.py``)."""


@dataclass(frozen=True)
class Spec:
    """Everything that one judging needs.

    Attributes:
        reference: path of the task's oracle.
        flops: operations of one call, an expression of dims; ``0`` if unknown.
        elements: cap on the element count of every tensor of a drawn config.
        extent: cap on every dim of a drawn config, unless a visible one has more.
        compare: how each output is compared; outputs not listed, by the tolerance of their dtype.
        policy: the task's changes to the gate's defaults; each gate reads its own.
        choice: a file with the modes in which a PyTorch baseline is timed; empty if the gate has to
            choose them.
        compiled: a file with the code compiled for these modes; empty for none.
        tf32: whether programs may round the factors of f32's products to TF32.
    """

    gate: str
    platform: str
    family: str
    candidate: Program
    baseline: Program
    reference: str
    signature: Signature
    space: Space
    configs: tuple[Config, ...]
    flops: str
    elements: int
    extent: int
    salt: str
    policy: Mapping[str, Any]
    compare: Mapping[str, Any] = field(default_factory=dict)
    choice: str = ""
    compiled: str = ""
    tf32: bool = False

    @property
    def quantised(self) -> frozenset[str]:
        """The outputs that may be rounded by their kernel."""
        return frozenset(name for name, how in self.compare.items() if how == QUANTISED)


def read_spec(path: Path) -> Spec:
    """The spec in ``path``. Raises SpecError for a malformed one."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SpecError(f"{path.name}: {error}") from None
    return parse_spec(value)


def parse_spec(value: Any) -> Spec:
    """The spec in a JSON value. Raises SpecError for a malformed one."""
    if not isinstance(value, dict) or value.get("schema") != 1:
        raise SpecError("the spec is not of schema 1")
    gate = _text(value, "gate")
    if not gate.isidentifier():
        raise SpecError(f"unknown judging gate {gate!r}")
    libraries = tuple(str(item) for item in _list(value, "libraries"))
    runner = _text(value, "runner") or None
    space = _read_space(_table(value, "space"))
    signature = _read_signature(_table(value, "signature"), space)
    platform = _text(value, "platform")
    native = (libraries, runner, _text(value, "launch_filter"))
    candidate = _read_program(_table(value, "candidate"), platform, *native)
    usual = candidate.abi if platform == "cpu" else ""
    limits = value.get("limits") or {}
    flops = str(value.get("flops") or "0")
    _check_expression(flops, signature.dims)
    return Spec(
        gate=gate,
        platform=platform,
        family=_text(value, "family"),
        candidate=candidate,
        baseline=_read_program(_table(value, "baseline"), platform, *native),
        reference=_text(value, "reference"),
        signature=signature,
        space=space,
        configs=_read_configs(_list(value, "configs"), signature, space),
        flops=flops,
        elements=_read_cap("elements", limits, _ELEMENTS.get(usual, _UNCAPPED)),
        extent=_read_cap("extent", limits, _EXTENTS.get(usual, _UNCAPPED)),
        salt=_text(value, "salt"),
        policy=dict(value.get("policy") or {}),
        compare=dict(value.get("compare") or {}),
        choice=_text(value, "choice"),
        compiled=_text(value, "compiled"),
        tf32=value.get("tf32") is True,
    )


def config_name(
    dtype: str,
    dims: Mapping[str, int],
    absent: tuple[str, ...] = (),
    scalars: Mapping[str, float] | None = None,
) -> str:
    """The name of a config, such as ``f16 rows=4096 cols=1024 bias=none``.

    ``scalars`` are those that differ from the usual ones.
    """
    sizes = [f"{name}={value}" for name, value in dims.items()]
    sizes += [f"{name}={shown(value)}" for name, value in (scalars or {}).items()]
    return " ".join((dtype, *sizes, *(f"{name}=none" for name in absent)))


def largest_tensor(signature: Signature, dims: Mapping[str, int]) -> int:
    """Elements of the largest tensor. Raises ShapeError if one has no valid shape."""
    tensors = (*signature.inputs, *signature.outputs, *signature.state)
    return max(_elements(argument, dims) for argument in tensors)


def _elements(argument: Argument, dims: Mapping[str, int]) -> int:
    count = 1
    for extent in shapes.shape(argument, dims):
        count *= extent
    return count


def read_policy(kind: type[Policy], values: Mapping[str, Any]) -> Policy:
    """A policy dataclass with the task's ``values`` in place of its defaults.

    Raises SpecError for an unknown name or a value whose type differs from the default's.
    """
    assert dataclasses.is_dataclass(kind)
    default = kind()
    defaults = {item.name: getattr(default, item.name) for item in dataclasses.fields(kind)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in defaults:
            raise SpecError(f"unknown policy {name!r}; known: {', '.join(sorted(defaults))}")
        changes[name] = _like(name, value, defaults[name])
    return kind(**changes)


def _like(name: str, value: Any, default: Any) -> Any:
    wanted = type(default)
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is tuple and isinstance(value, list):
        return tuple(value)
    if default is None or type(value) is wanted:
        return value
    raise SpecError(f"policy {name!r} must be {wanted.__name__}, got {value!r}")


def _read_program(
    value: Mapping[str, Any],
    platform: str,
    libraries: tuple[str, ...],
    runner: str | None,
    launch_filter: str,
) -> Program:
    for abi in _ABIS:
        if value.get("abi") == abi:
            path, entry = _text(value, "path"), _text(value, "entry")
            if abi == "hip":
                native = (libraries, runner, platform)
                return Program(abi, path, entry, *native, launch_filter=launch_filter)
            if abi == "call":
                more: dict[str, Any] = {
                    key: _text(value, key) for key in ("call", "adapter", "modules")
                }
                return Program(abi, path, entry, platform=platform, **more)
            return Program(
                abi,
                path,
                entry,
                platform=platform,
                launch_filter=launch_filter,
                binaries=_text(value, "binaries"),
            )
    raise SpecError(f"unknown abi {value.get('abi')!r}; known: {', '.join(_ABIS)}")


def _read_space(value: Mapping[str, Any]) -> Space:
    dims: dict[str, tuple[int, int]] = {}
    for name, bounds in _table(value, "dims").items():
        match bounds:
            case [int(low), int(high)] if 0 <= low <= high:
                dims[str(name)] = (low, high)
            case _:
                raise SpecError(f"invalid bounds of dim {name!r}: {bounds!r}")
    dtypes = tuple(_list(value, "dtypes"))
    if not dtypes or any(dtype not in DTYPES for dtype in dtypes):
        raise SpecError(f"invalid dtypes {list(dtypes)!r}; known: {', '.join(DTYPES)}")
    where = tuple(str(text) for text in _list(value, "where"))
    for text in where:
        if shapes.condition_names(text) - set(dims):
            raise SpecError(f"{text!r} is not a condition on the dims")
    scalars: dict[str, tuple[float, float]] = {}
    for name, between in (value.get("scalars") or {}).items():
        match between:
            case [int() | float() as least, int() | float() as most] if least < most:
                scalars[str(name)] = (least, most)
            case _:
                raise SpecError(f"invalid bounds of scalar {name!r}: {between!r}")
    return Space(dims, dtypes, where, scalars)


def _read_signature(value: Mapping[str, Any], space: Space) -> Signature:
    dims = tuple(str(name) for name in _list(value, "dims"))
    if set(dims) != space.dims.keys() or len(dims) != len(space.dims):
        raise SpecError(f"the signature's dims are {list(dims)}, the space's {list(space.dims)}")
    signature = Signature(
        inputs=tuple(_read_argument(item, dims) for item in _list(value, "inputs")),
        outputs=tuple(_read_argument(item, dims) for item in _list(value, "outputs")),
        scalars=tuple(_read_scalar(item) for item in _list(value, "scalars")),
        dims=dims,
        updates=tuple(str(name) for name in _list(value, "updates")),
        state=tuple(_read_argument(item, dims) for item in _list(value, "state")),
    )
    if unknown := set(signature.updates) - {argument.name for argument in signature.inputs}:
        raise SpecError(f"'updates' names {min(unknown)!r}, which is not an input")
    if not signature.results:
        raise SpecError("a kernel without outputs cannot be judged")
    tensors = (*signature.inputs, *signature.outputs, *signature.state)
    named = [argument.name for argument in tensors]
    named += [*(name for name, _ in signature.scalars), *dims]
    if unknown := space.scalars.keys() - dict(signature.scalars).keys():
        raise SpecError(f"the space varies {min(unknown)!r}, which is not a scalar")
    if len(set(named)) != len(named):
        raise SpecError("two arguments have the same name")
    return signature


def _read_argument(value: Any, dims: tuple[str, ...]) -> Argument:
    match value:
        case [str(name), str(dtype), [*shape], *more] if dtype in {ELEMENT, *DTYPES}:
            said = more[0] if more else {}
            count = str(said.get("count", ""))
            sizes = tuple(str(expression) for expression in ([count] if count else []) + shape)
            for expression in sizes:
                _check_expression(expression, dims)
            layout = str(said.get("layout", ""))
            return Argument(
                name, dtype, sizes, bool(count), bool(said.get("optional", False)), layout
            )
        case _:
            raise SpecError(f"invalid tensor argument: {value!r}")


def _check_expression(expression: str, dims: tuple[str, ...]) -> None:
    try:
        unknown = shapes.names(expression) - set(dims)
    except shapes.ShapeError as error:
        raise SpecError(str(error)) from None
    if unknown:
        raise SpecError(f"{expression!r} names {min(unknown)!r}, which is not a dim")


def _read_scalar(value: Any) -> tuple[str, Scalar]:
    match value:
        case [str(name), int(default) | float(default) | str(default)]:
            return name, default
        case _:
            raise SpecError(f"invalid scalar: {value!r}")


def _read_configs(values: list[Any], signature: Signature, space: Space) -> tuple[Config, ...]:
    configs = tuple(_read_config(value, signature, space) for value in values)
    if not configs:
        raise SpecError("no configs")
    if len({config.name for config in configs}) != len(configs):
        raise SpecError("two configs have the same name")
    return configs


def _read_config(value: Any, signature: Signature, space: Space) -> Config:
    if not isinstance(value, dict):
        raise SpecError(f"invalid config: {value!r}")
    name, dims = _text(value, "name"), _table(value, "dims")
    scalars = value.get("scalars") or {}
    known = dict(signature.scalars)
    if not name or not all(type(extent) is int for extent in dims.values()):
        raise SpecError(f"invalid config: {value!r}")
    if not space.contains(dims) or value.get("dtype") not in space.dtypes:
        raise SpecError(f"config {name!r} is outside the shape space")
    if unknown := [key for key in scalars if key not in known]:
        raise SpecError(f"config {name!r} sets {unknown[0]!r}, which is not a scalar")
    ordered = {dim: dims[dim] for dim in signature.dims}
    absent = tuple(str(item) for item in _list(value, "absent"))
    if set(absent) - {argument.name for argument in signature.inputs if argument.optional}:
        raise SpecError(
            f"config {name!r} leaves out {absent}, but only optional inputs can be absent"
        )
    return Config(name, ordered, value["dtype"], {**known, **scalars}, absent)


def _read_cap(name: str, limits: Any, default: int) -> int:
    cap = limits.get(name, default) if isinstance(limits, dict) else None
    if type(cap) is not int or cap < 1:
        raise SpecError(f"invalid limits: {limits!r}")
    return cap


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key, "")
    if not isinstance(text, str):
        raise SpecError(f"{key!r} must be a string, got {text!r}")
    return text


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    items = value.get(key, [])
    if not isinstance(items, list):
        raise SpecError(f"{key!r} must be a list, got {items!r}")
    return items


def _table(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = value.get(key)
    if not isinstance(table, dict):
        raise SpecError(f"{key!r} must be an object, got {table!r}")
    return table
