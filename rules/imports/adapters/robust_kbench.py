"""robust-kbench: ``Model`` calls ``forward_fn`` with its weights; answers define ``forward``.

``tasks``, ``TERMS`` and ``MARK`` are read by ``kabuild import`` and need the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import inspect
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.functions import Values
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "Apache-2.0", "redistribute": True}
MARK = "robust_kbench"

_FUNCTION, _INPUTS = "forward_fn", "get_inputs"
_TABLES = ("input", "init", "shared")
Names = Mapping[str, Any]
Table = dict[str, Any]


def tasks(root: Path) -> Iterator[Table]:
    """All tasks; those that answer with gradients end in ``_backward``."""
    for path in sorted(root.glob("tasks/**/func_*ward.py")):
        home, way = path.parent, path.stem.removeprefix("func_")
        name = home.relative_to(root / "tasks").as_posix()
        files = [path, home / f"config_{way}.json", *sorted(home.glob("[0-9]*_*.py"))]
        yield {
            "name": name if way == "forward" else f"{name}_backward",
            "files": [file.relative_to(root).as_posix() for file in files],
            "tags": [way, *name.split("/")[1:2]],
        }


def capture(name: str, files: Sequence[str]) -> Table:
    """What the lock says of a task. Raises LeftOutError."""
    from imported.boundary import LeftOutError, needing_packages, sources
    from imported.constants import read_module
    from imported.functions import learn

    if "backward" in files[0]:
        what = "its baseline is PyTorch's autograd, and no function of the task computes it"
        raise LeftOutError("NO_BASELINE", what)
    names = needing_packages(lambda: _load(files[0]))
    settings = _settings(names, json.loads((HERE / "original" / files[1]).read_text()))
    sizes = {n: max(s[n] for s in settings) for n, v in settings[0].items() if type(v) is int}

    def call(moved: Mapping[str, int], device: str) -> tuple[Values, list[Any]]:
        return _call(names, {**settings[0], **moved}, device)

    learnt = learn(names[_FUNCTION], call, sizes, "forward")
    original = HERE / "original" / files[-1 if len(files) > 2 else 0]
    return {
        "origin": read_module(original, functions=(), of="Model").origin,
        "attrs": {
            **learnt.declared(settings),
            **sources("robust_kbench", files),
            "baseline": _FUNCTION,
            "parameters": learnt.parameters(settings[0], file=files[0]),
            "brief": f"Write a function forward that computes what {_FUNCTION} of {files[0]} does, "
            f"from the same arguments in the same order, and is faster. (robust-kbench, {name})",
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of a call, from the original's own functions under a seed."""
    from imported.functions import inputs_of

    return inputs_of(*_drawn(config, generator))


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    from imported.functions import state_of

    return state_of(*_drawn(config, generator))


def reference(**given: Any) -> dict[str, Any]:
    """What the original computes from arguments and weights, in their precision."""
    from imported.functions import run, sized

    told = _told()
    names = _load(told["file"])
    call = _call(names, sized(told, given), "meta")[0]
    return run(names[_FUNCTION], call, {**given, **given.get("state", {})}, told)


def _told() -> Table:
    told: Table = json.loads((HERE / "parameters.json").read_text())
    return told


def _drawn(config: Mapping[str, Any], generator: Generator) -> tuple[Values, Table]:
    from imported.functions import sized
    from imported.modules import under_seed

    told = _told()
    names, settings, device = _load(told["file"]), sized(told, config), str(generator.device)
    return under_seed(generator, lambda: _call(names, settings, device)[0]), told


def _load(file: str) -> Names:
    names: Table = {"__name__": "imported_task"}
    exec(compile((HERE / "original" / file).read_text(), file, "exec"), names)  # noqa: S102 - the task's own code
    return names


def _settings(names: Names, tables: Mapping[str, list[Table]]) -> list[Table]:
    """What constructor and inputs are given: first the one to be shown, then all others."""
    known: Table = {}
    for function in (names["Model"].__init__, names[_INPUTS]):
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.default is not parameter.empty:
                known[name] = parameter.default
    choices = [tables[f"multi_{table}_configs"] or [{}] for table in _TABLES]
    first = {
        k: v for table in _TABLES for k, v in (tables[f"single_{table}_configs"] or [{}])[0].items()
    }
    return [{**known, **first}] + [
        {**known, **first, **one, **two, **three} for one, two, three in itertools.product(*choices)
    ]


def _call(names: Names, settings: Table, device: str) -> tuple[Values, list[Any]]:
    """The arguments of the call that the original makes, and those that were drawn for it."""
    import torch
    from imported.functions import listen

    def taken(function: Callable[..., Any]) -> Table:
        return {k: v for k, v in settings.items() if k in inspect.signature(function).parameters}

    with torch.device(device):
        model = names["Model"](**taken(names["Model"].__init__))
        drawn = names[_INPUTS](**taken(names[_INPUTS]))
    return listen(names[_FUNCTION], lambda function: model(*drawn, fn=function)), list(drawn)
