"""Boundaries of the form ``function(*arguments)``, where a benchmark's own code makes the call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from imported.boundary import Arguments, LeftOutError, below, declared, integers_of, returned
from imported.modules import check_execution, first_line, identical, moved, numbers_like
from imported.precision import HALF, check_draws, doubled, excess, precise
from imported.shape_space import FIXED, INTEGERS, Shapes, Space, explore
from imported.starting_points import starting_points, with_originals

Values = Mapping[str, Any]
"""The arguments of a call by the function's own names."""

Told = dict[str, Any]
Call = Callable[[Mapping[str, int], str], tuple[Values, Sequence[Any]]]
"""For some settings, on a device: the arguments of a call, and those that are drawn for it."""

Text = Callable[[Mapping[str, str]], str]
"""The call as a declaration has it, from the text of each argument by name."""

_RESULTS = ("y", "out", "result", "results")


class _CalledError(BaseException):
    """Says that the function was called; a benchmark's code does not catch it."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.values = values


@dataclass(frozen=True)
class Learnt:
    """A captured task.

    Attributes:
        told: what ``inputs``, ``state`` and ``reference`` have to be told: ``device``, where shapes
            can be asked for; ``dims``, the settings that each dim is; ``settings``, the sizes that
            stay as they are; and by name, the tensors that are ``inputs`` of a call, ``state``,
            that is weights, ``updates``, those of the inputs that a call changes, and ``passed``,
            what it writes to and returns. ``returned`` is whether there are other results than
            these. ``unread`` is an argument that a solution may write its result to, and return.
        attrs: what a declaration says.
    """

    space: Space
    told: Told
    attrs: dict[str, Any]

    def declared(self, choices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``attrs`` with the benchmark's own settings that differ in dims alone as configs.

        The first of ``choices`` is the one that was learnt from.
        """
        found: list[dict[str, int]] = []
        for choice in choices:
            config = {name: choice[members[0]] for name, members in self.told["dims"].items()}
            settings = {**choices[0], **self.told["settings"]}
            same = sized({**self.told, "settings": settings}, config) == choice
            if same and config not in found and self._holds(config):
                found.append(config)
        if not found:
            return self.attrs
        high = {d.name: max(d.high, *(c[d.name] for c in found)) for d in self.space.dims}
        dims = {d.name: f"{d.low}..{high[d.name]}" for d in self.space.dims}
        return {**self.attrs, "dims": dims, "configs": found}

    def parameters(self, settings: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """``told`` with all settings, in words of TOML, which has no ``None``."""
        known = {**settings, **self.told["settings"]}
        return {
            **self.told,
            **more,
            "settings": {name: value for name, value in known.items() if value is not None},
            "absent": [name for name, value in known.items() if value is None],
        }

    def _holds(self, config: Mapping[str, int]) -> bool:
        dims = self.space.dims
        return all(d.low <= config[d.name] and not config[d.name] % d.step for d in dims)


def learn(
    function: Callable[..., Any],
    call: Call,
    sizes: Mapping[str, int],
    entry: str,
    *,
    devices: Sequence[str] = ("meta",),
    keywords: bool = False,
    text: Text | None = None,
    checked: bool = False,
    memory: bool = False,
    fixed: re.Pattern[str] | None = FIXED,
) -> Learnt:
    """Find out what ``function`` takes and returns. Raises LeftOutError.

    ``call`` makes the arguments of one call; ``sizes`` are those of its settings that may be dims;
    ``entry`` is what a candidate defines, and ``text`` says how it is called, if not with the
    arguments in their order; with ``keywords`` all are passed by name. Shapes are looked at on the
    first of ``devices`` that can say them. Where results are ``checked`` by the task itself, there
    are several right ones, in any layout. With ``memory`` an argument that nothing reads may be for
    the result. Sizes whose names are ``fixed`` are not dims.
    """
    stay = {name for name in sizes if fixed and fixed.search(name)}
    names = [name for name, value in sizes.items() if value > 0 and name not in stay]

    def probe(moved: Sequence[int], device: str) -> Shapes | None:
        try:
            return _shapes_of(function, call(dict(zip(names, moved, strict=True)), device)[0])
        except Exception:  # noqa: BLE001 - whatever the benchmark's code raises for these sizes
            return None

    values = [sizes[name] for name in names]

    def elements(moved: Sequence[int]) -> int:
        arguments = call(dict(zip(names, moved, strict=True)), "meta")[0]
        return sum(tensor.numel() for tensor in tensors(arguments).values())

    starts = ((start, one) for one in devices for start in starting_points(values, one, elements))
    start, device = next((found for found in starts if probe(*found) is not None), (values, ""))
    if not device:
        _refuse(function, lambda: call(sizes, devices[-1])[0], devices[-1])
    space = explore(names, start, lambda moved: probe(moved, device), fixed=fixed)
    space = with_originals(space, values)
    told: Told = {
        "device": device,
        "dims": {d.name: [names[i] for i in d.members] for d in space.dims},
    }
    dims = {name for members in told["dims"].values() for name in members}
    told["settings"] = {name: sizes[name] for name in names if name not in dims}
    small, drawn = call(sized(told, space.small), "cpu")
    given = tensors(small)
    told["passed"] = passed = _passed(function, small)
    told["returned"] = not (passed and _read(function, small, passed))
    changed = _changed_by(function, small)
    if told["returned"]:
        told["updates"] = [name for name in changed if name not in passed]
    else:
        told["passed"], told["updates"] = [], [*dict.fromkeys((*passed, *changed))]
    fresh = {*map(id, drawn), *(id(given[name]) for name in told["updates"])}
    told["state"] = [name for name, tensor in given.items() if id(tensor) not in fresh]
    told["unread"] = _unread(function, small, told, space) if memory else ""
    taken = {*told["passed"], *told["state"], told["unread"]}
    told["inputs"] = [name for name in given if name not in taken]
    check_execution(lambda seed: run(function, small, given, told, seed=seed))

    def excess_at(dims: Mapping[str, int]) -> float:
        values = call(sized(told, dims), "cpu")[0]
        drawn = {n: t.detach() for n, t in tensors(values).items()}
        exact = run(function, values, doubled(drawn), told)
        return excess(run(function, values, drawn, told), exact)

    def both(seed: int) -> tuple[Told, Told]:
        torch.manual_seed(seed)
        values = call(sized(told, space.small), "cpu")[0]
        drawn = {n: t.detach() for n, t in tensors(values).items()}
        exact = run(function, values, doubled(drawn, HALF), told)
        return run(function, values, drawn, told), exact

    if not checked:
        space = precise(space, excess_at)
        check_draws(both, given.values())
    sizes_shown = {d.name: start[d.members[0]] for d in space.dims}
    shown = call(sized(told, sizes_shown), device)[0]
    attrs = _attributes(function, shown, told, text or _plain(entry, keywords=keywords), space)
    if checked or (memory and told["returned"] and not (told["passed"] or told["unread"])):
        attrs["layout"] = dict.fromkeys(attrs["outputs"], "any")  # values alone are compared
    return Learnt(space, told, attrs)


def sized(told: Mapping[str, Any], dims: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of one config."""
    members = ((name, dims[dim]) for dim, names in told["dims"].items() for name in names)
    return {**dict.fromkeys(told.get("absent", ())), **told["settings"], **dict(members)}


def taken(function: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are parameters of ``function``."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in settings.items() if name in known}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The defaults of a function's parameters."""
    known = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in known if one.default is not one.empty}


def listen(function: Callable[..., Any], run: Callable[[Callable[..., Any]], Any]) -> Values:
    """What ``run`` passes to the stand-in for ``function`` that it gets. Raises LeftOutError."""
    signature = inspect.signature(function)

    def stand_in(*arguments: Any, **keywords: Any) -> None:
        raise _CalledError(signature.bind(*arguments, **keywords).arguments)

    try:
        run(stand_in)
    except _CalledError as called:
        return called.values
    raise LeftOutError("DOES_NOT_RUN", "the task's own code does not call the function")


def tensors(values: Values) -> dict[str, Tensor]:
    """The tensors among arguments, at any depth of lists."""
    return {name: tensor for key, value in values.items() for name, tensor in _named(value, key)}


def inputs_of(values: Values, told: Told) -> dict[str, Tensor]:
    """The inputs of a call; constant buffers among them are moved."""
    found = tensors(values)
    same = {name: found[name].detach() for name in told["inputs"]}
    return {n: moved(n, t) if n in told["updates"] else t for n, t in same.items()}


def state_of(values: Values, told: Told) -> dict[str, Tensor]:
    """The weights; what construction leaves constant is moved."""
    found = tensors(values)
    return {name: moved(name, found[name].detach()) for name in told["state"]}


def run(
    function: Callable[..., Any],
    values: Values,
    given: Mapping[str, Any],
    told: Told,
    *,
    seed: int = 0,
) -> dict[str, Tensor]:
    """The results of a call with the tensors of ``given``, and what it leaves in its inputs.

    Memory that it writes to need not be given.
    """
    known = [value for value in given.values() if isinstance(value, Tensor)]
    copies = {
        name: given[name].clone() if name in given else _memory(like, known)
        for name, like in tensors(values).items()
    }
    arguments = {name: placed(value, name, copies) for name, value in values.items()}
    torch.manual_seed(seed)
    name = told.get("unread") or result_name(values)
    with torch.no_grad(), numbers_like(known):
        results = returned(function(**arguments), name)[1]
    left = {name: copies[name] for name in (*told["passed"], *told["updates"])}
    return {**results, **left} if told["returned"] and not told["passed"] else left


def _refuse(function: Callable[..., Any], values: Callable[[], Values], device: str) -> NoReturn:
    """Raise LeftOutError, with the reason why there are no shapes on a device."""
    if device == "meta":
        raise LeftOutError("NO_SHAPES", "its shapes depend on data, or it fails without data")
    try:
        _shapes_of(function, values())
    except LeftOutError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the benchmark's code raises
        why = f"its own code fails on a CPU: {first_line(error)}"
        raise LeftOutError("NEEDS_GPU", why) from None
    raise LeftOutError("NOT_REPEATABLE", "it fails in some runs")


def _memory(like: Tensor, known: Sequence[Tensor]) -> Tensor:
    exact = like.is_floating_point() and any(t.dtype is torch.float64 for t in known)
    kind = torch.float64 if exact else like.dtype
    return torch.zeros(like.shape, dtype=kind, device=known[0].device)


def _shapes_of(function: Callable[..., Any], values: Values) -> Shapes:
    found = {f"tensors.{name}": tuple(t.shape) for name, t in tensors(values).items()}
    with torch.no_grad():
        results = returned(function(**values), result_name(values))[1]
    found.update((f"outputs.{name}", tuple(t.shape)) for name, t in results.items())
    return {**found, f"{INTEGERS}in": (*integers_of(list(values.values())),)}


def _attributes(
    function: Callable[..., Any], values: Values, told: Told, text: Text, space: Space
) -> dict[str, Any]:
    said = Arguments(iter(space.shapes[f"{INTEGERS}in"]))
    parts = {name: said.text(value, name) for name, value in values.items()}
    with torch.no_grad():
        targets, outputs = returned(function(**values), told["unread"] or result_name(values))
    kinds = {n: declared(t, space.shapes[f"tensors.{n}"]) for n, t in said.tensors.items()}
    places = {told["unread"]: f"tensors.{told['unread']}"}
    axes = {name: space.shapes[places.get(name, f"outputs.{name}")] for name in outputs}
    results = {name: declared(tensor, axes[name]) for name, tensor in outputs.items()}
    if told["passed"] or not told["returned"]:
        targets, results = "_", {name: kinds[name] for name in told["passed"]}
    return {
        "call": f"{targets} = {text(parts)}",
        "inputs": {name: kinds[name] for name in told["inputs"]},
        "state": {name: kinds[name] for name in told["state"]},
        "updates": told["updates"],
        "outputs": results,
        "scalars": dict(said.scalars),
        **space.attributes(),
    }


def _plain(entry: str, *, keywords: bool) -> Text:
    def text(parts: Mapping[str, str]) -> str:
        passed = (f"{name}=" * keywords + part for name, part in parts.items())
        return f"{entry}({', '.join(passed)})"

    return text


def _changed_by(function: Callable[..., Any], values: Values) -> list[str]:
    given = tensors(values)
    told = {"updates": tuple(given), "passed": (), "returned": False}
    after = run(function, values, given, told)
    return [name for name, tensor in given.items() if not identical(tensor, after[name])]


def _passed(function: Callable[..., Any], values: Values) -> list[str]:
    """The arguments that are the results, where all of these are arguments."""
    copies = {name: tensor.clone() for name, tensor in tensors(values).items()}
    places = {tensor.data_ptr(): name for name, tensor in copies.items()}
    arguments = {name: placed(value, name, copies) for name, value in values.items()}
    with torch.no_grad():
        results = returned(function(**arguments))[1].values()
    found = [places.get(tensor.data_ptr(), "") for tensor in results]
    return found if all(found) else []


def _read(function: Callable[..., Any], values: Values, passed: Sequence[str]) -> bool:
    """Whether the results depend on what the memory for them held before."""
    given = tensors(values)
    told = {"updates": (), "passed": tuple(passed), "returned": True}
    blank = {n: torch.zeros_like(t) if n in passed else t for n, t in given.items()}
    one, other = run(function, values, given, told), run(function, values, blank, told)
    return not all(identical(one[name], other[name]) for name in passed)


def _unread(function: Callable[..., Any], values: Values, told: Told, space: Space) -> str:
    """The last argument, if it is memory of the only result's form that nothing reads; else ""."""
    given, last = tensors(values), next(reversed(tensors(values)), "")
    if told["passed"] or told["updates"] or not told["returned"] or last in told["state"]:
        return ""
    found = run(function, values, given, told)
    (name, result), *others = found.items()
    memory = given[last]
    axes = (space.shapes.get(f"tensors.{last}"), space.shapes.get(f"outputs.{name}"))
    fits = memory.dtype == result.dtype or (
        memory.is_floating_point() and result.dtype is torch.float64
    )
    same = axes[0] == axes[1] and memory.shape == result.shape
    if others or len(given) == 1 or not (fits and same):
        return ""
    for value in (1.0, 0.0):
        blank = {**given, last: torch.full_like(memory, value)}
        if not identical(run(function, values, blank, told)[name], result):
            return ""
    return last


def result_name(values: Values) -> str:
    """A name for the result that no argument has."""
    taken = {*values, *tensors(values)}
    return next(name for name in _RESULTS if name not in taken)


def _named(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, list | tuple | dict):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from _named(item, below(name, key))


def placed(value: Any, name: str, given: Mapping[str, Any]) -> Any:
    """An argument with its tensors, at any depth, replaced by those of ``given``."""
    if isinstance(value, Tensor):
        return given[name]
    if isinstance(value, list | tuple):
        return type(value)(placed(v, below(name, i), given) for i, v in enumerate(value))
    if isinstance(value, dict):
        return {key: placed(item, below(name, key), given) for key, item in value.items()}
    return value
