"""robust-kbench: ``Model`` calls ``forward_fn`` with its weights; answers define ``forward``,
or ``backward``, which ``AutogradFunction`` calls.

``tasks``, ``TERMS`` and ``MARK`` are read by ``kabuild import`` and need the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.functions import Text, Values
    from imported.original_functions import Answer
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "Apache-2.0", "redistribute": True}
MARK = "robust_kbench"

_FUNCTION, _INPUTS = "forward_fn", "get_inputs"
_AUTOGRAD = "AutogradFunction"
_CHECKS = ("robust_kbench/sandbox/correct_forward_fn.py", "robust_kbench/utils.py")
_TABLES = ("input", "init", "shared")
_COMPUTED = {"forward": f"what {_FUNCTION}", "backward": f"what the backward pass of {_AUTOGRAD}"}
Names = Mapping[str, Any]
Table = dict[str, Any]


def tasks(root: Path) -> Iterator[Table]:
    """All tasks; those that answer with gradients end in ``_backward``."""
    for path in sorted(root.glob("tasks/**/func_*ward.py")):
        home, way = path.parent, path.stem.removeprefix("func_")
        name = home.relative_to(root / "tasks").as_posix()
        files = [path, home / f"config_{way}.json", *sorted(home.glob("[0-9]*_*.py"))]
        files += [root / check for check in _CHECKS if (root / check).is_file()] * (
            way == "forward"
        )
        yield {
            "name": name if way == "forward" else f"{name}_backward",
            "files": [file.relative_to(root).as_posix() for file in files],
            "tags": [way, *name.split("/")[1:2]],
        }


def capture(name: str, files: Sequence[str]) -> Table:
    """What the lock says of a task. Raises LeftOutError."""
    from imported.boundary import needing_packages, sources
    from imported.constants import read_module
    from imported.functions import learn

    checks = [file for file in files if file in _CHECKS]
    files = [file for file in files if file not in _CHECKS]
    names = needing_packages(lambda: _load(files[0]))
    settings = _settings(names, json.loads((HERE / "original" / files[1]).read_text()))
    sizes = {n: max(s[n] for s in settings) for n, v in settings[0].items() if type(v) is int}
    function, text = names[_FUNCTION], None
    if _AUTOGRAD in names:
        function, _, _, text = _call(names, settings[0], "meta")
    entry = "backward" if text else "forward"
    more = {"adapter": "//rules/imports/tools/gradients.py", "entry": entry} if text else {}

    def call(moved: Mapping[str, int], device: str) -> tuple[Values, list[Any]]:
        return _call(names, {**settings[0], **moved}, device)[1:3]

    learnt = learn(function, call, sizes, entry, text=text)
    original = HERE / "original" / files[-1 if len(files) > 2 else 0]
    return {
        "origin": read_module(original, functions=(), of="Model").origin + entry,
        "attrs": {
            **learnt.declared(settings),
            **sources("robust_kbench", files),
            **more,
            "check": checks,
            "baseline": _FUNCTION,
            "parameters": learnt.parameters(settings[0], file=files[0]),
            "brief": f"Write a function {entry} that computes {_COMPUTED[entry]} of {files[0]} "
            f"does, from the same arguments, and is faster. (robust-kbench, {name})",
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of a call, from the original's own functions under a seed."""
    from imported.functions import inputs_of

    return _drawn(config, generator, inputs_of, inputs_first=True)


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    from imported.functions import state_of

    return _drawn(config, generator, state_of, inputs_first=False)


def reference(**given: Any) -> dict[str, Any]:
    """What the original computes from arguments and weights, in their precision."""
    from imported.functions import run, sized

    told: Table = json.loads((HERE / "parameters.json").read_text())
    names = _load(told["file"])
    function, call = _call(names, sized(told, given), "meta")[:2]
    return run(function, call, {**given, **given.get("state", {})}, told)


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
    """What the original draws under these seeds, and computes."""
    import torch
    from imported.functions import listen, placed, sized, tensors
    from imported.original_functions import results_of

    told: Table = json.loads((HERE / "parameters.json").read_text())
    names, settings = _load(told["file"]), sized(told, config)

    def passed() -> Values:
        model = names["Model"](**_taken(names["Model"].__init__, settings))
        return listen(names[_FUNCTION], lambda stand_in: model(*drawn, fn=stand_in))

    torch.manual_seed(seeds["inputs"])
    drawn = names[_INPUTS](**_taken(names[_INPUTS], settings))
    first = tensors(passed())  # a model's buffers that calls change are inputs, too
    torch.manual_seed(seeds["state"])
    values = passed()
    named = {**tensors(values), **{name: first[name] for name in told["inputs"]}}
    found = {name: tensor.detach().clone() for name, tensor in named.items()}
    values = {name: placed(value, name, named) for name, value in values.items()}
    results = results_of(names[_FUNCTION], values, told)
    parts = {part: {n: found[n] for n in told[part]} for part in ("inputs", "state")}
    return {**parts, "results": results}


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """What robust-kbench's check, which has seeds of its own, says of a candidate."""
    from imported.functions import sized
    from imported.original_functions import checked_trials

    del seed
    told: Table = json.loads((HERE / "parameters.json").read_text())
    names, settings = _load(told["file"]), sized(told, config)
    taken = _taken(names[_INPUTS], settings), _taken(names["Model"].__init__, settings)
    check, utilities = (HERE / "original" / file for file in _CHECKS)
    return checked_trials(check, utilities, names, taken, answer)


def _taken(function: Callable[..., Any], settings: Table) -> Table:
    from imported.functions import taken

    return taken(function, settings)


def _drawn(
    config: Mapping[str, Any],
    generator: Generator,
    part: Callable[[Values, Table], dict[str, Tensor]],
    *,
    inputs_first: bool,
) -> dict[str, Tensor]:
    from imported.functions import sized
    from imported.modules import under_seed

    told: Table = json.loads((HERE / "parameters.json").read_text())
    names, settings, device = _load(told["file"]), sized(told, config), str(generator.device)

    def draw() -> dict[str, Tensor]:
        return part(_call(names, settings, device, inputs_first=inputs_first)[1], told)

    return under_seed(generator, draw)


def _load(file: str) -> Names:
    names: Table = {"__name__": "imported_task"}
    exec(compile((HERE / "original" / file).read_text(), file, "exec"), names)  # noqa: S102 - the task's own code
    return names


def _settings(names: Names, tables: Mapping[str, list[Table]]) -> list[Table]:
    """What constructor and inputs are given: first the one to be shown, then all others."""
    from imported.functions import defaults

    known = {**defaults(names["Model"].__init__), **defaults(names[_INPUTS])}
    choices = [tables[f"multi_{table}_configs"] or [{}] for table in _TABLES]
    first = {
        k: v for table in _TABLES for k, v in (tables[f"single_{table}_configs"] or [{}])[0].items()
    }
    return [{**known, **first}] + [
        {**known, **first, **a, **b, **c} for a, b, c in itertools.product(*choices)
    ]


def _call(
    names: Names, settings: Table, device: str, *, inputs_first: bool = False
) -> tuple[Callable[..., Any], Values, list[Any], Text | None]:
    """What is called, its arguments, those that were drawn for it, and how it is called."""
    import torch
    from imported.backward import listen_backward
    from imported.functions import listen, taken
    from imported.modules import ShapesOnly

    with torch.device(device), ShapesOnly():
        drawn = [*names[_INPUTS](**taken(names[_INPUTS], settings))] if inputs_first else None
        model = names["Model"](**taken(names["Model"].__init__, settings))
        drawn = drawn or [*names[_INPUTS](**taken(names[_INPUTS], settings))]
    function = names[_FUNCTION]
    values = listen(function, lambda stand_in: model(*drawn, fn=stand_in))
    if _AUTOGRAD not in names:
        return function, values, drawn, None
    found = listen_backward(names[_AUTOGRAD], function, values)
    return found.computed(function), found.values, found.drawn(drawn, values), found.text
