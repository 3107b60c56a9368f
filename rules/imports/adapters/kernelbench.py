"""KernelBench: ``class Model`` with ``get_inputs`` and ``get_init_inputs``; answers ``ModelNew``.

``tasks``, ``TERMS`` and ``MARK`` are read by ``kabuild import`` and need the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.constants import Module
    from imported.shape_space import Shapes
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "MIT", "redistribute": True}
MARK = "KernelBench/level1"
"""What a checkout of this benchmark has."""

_INPUTS, _INIT = "get_inputs", "get_init_inputs"
Names = Mapping[str, Any]
Told = Mapping[str, Any]
Draw = Callable[[Told, Names], "dict[str, Tensor]"]


def tasks(root: Path) -> Iterator[dict[str, Any]]:
    """All problems of levels 1 to 4, by level and number."""
    for path in sorted(root.glob("KernelBench/level[1-4]/*.py"), key=_number):
        level, stem = path.parent.name, re.sub(r"[^\w.+=-]", "_", path.stem)
        file = path.relative_to(root).as_posix()
        yield {"name": f"{level}/{stem}", "files": [file], "tags": [level]}


def capture(name: str, files: Sequence[str]) -> dict[str, Any]:
    """What the lock says of a task. Raises LeftOutError."""
    from imported.boundary import needing_packages, sources
    from imported.modules import call_of, check_execution, hidden_tensor, settled, under_seeds
    from imported.shape_space import explore

    module = _module(files[0])
    needing_packages(lambda: module.load(module.values))
    space = explore(module.names, module.values, lambda values: _shapes(module, values))
    parts = _parts(module.load(module.values))
    paths, hidden = call_of(*parts, space).paths, hidden_tensor(parts[1])
    told = {
        "file": files[0],
        "members": {d.name: [*d.members] for d in space.dims},
        "inputs": paths,
    }

    def check(dims: Mapping[str, int]) -> None:
        call = under_seeds(lambda: _parts(_names(module, told, dims), "cpu"), paths)
        check_execution(call, hidden)

    space = settled(space, check)
    call = call_of(*parts, space)
    return {
        "origin": module.origin,
        "attrs": {
            **sources("kernelbench", files),
            "baseline": "Model",
            "parameters": told,
            "brief": f"Write a class ModelNew that computes what the class Model of {files[0]} "
            "does, from the same constructor's arguments and the same weights, and is faster. "
            f"(KernelBench, {name})",
            **call.attributes("ModelNew", space),
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The arguments of a call, from the original's own function under a seed."""
    from imported.modules import tensors_at

    return _drawn(config, generator, lambda t, n: tensors_at(n[_INPUTS](), t["inputs"]))


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    from imported.modules import build, state_of

    return _drawn(config, generator, lambda _, n: state_of(build(n["Model"], n[_INIT]())))


def reference(**given: Any) -> dict[str, Any]:
    """What the original computes from arguments and weights, in their precision."""
    import torch
    from imported.modules import build, numbers_like, run

    told: Told = json.loads((HERE / "parameters.json").read_text())
    names = _names(_module(told["file"]), told, given)
    with torch.device("meta"):  # the values are given, only their places are asked for
        arguments = names[_INPUTS]()
    with next(given[n].device for n in told["inputs"]), numbers_like(given.values()):
        model = build(names["Model"], names[_INIT]())
        return run(model, arguments, told["inputs"], {**given, **given.get("state", {})})


def _drawn(config: Told, generator: Generator, draw: Draw) -> dict[str, Tensor]:
    """What the original's code draws from its global generator, under a seed of the judge's."""
    from imported.modules import under_seed

    told: Told = json.loads((HERE / "parameters.json").read_text())
    return under_seed(generator, lambda: draw(told, _names(_module(told["file"]), told, config)))


def _module(file: str) -> Module:
    from imported.constants import read_module

    return read_module(HERE / "original" / file, functions=(_INPUTS, _INIT), of="Model")


def _names(module: Module, told: Told, dims: Mapping[str, Any]) -> Names:
    """The names of the original for one config."""
    from imported.constants import with_dims

    return module.load(with_dims(module.values, told["members"], dims))


def _parts(names: Names, device: str = "meta") -> tuple[Any, Any, Any]:
    """The constructor's arguments, the model and the arguments of a call."""
    import torch
    from imported.modules import ShapesOnly, build

    init = names[_INIT]()
    with torch.device(device), ShapesOnly():
        return init, build(names["Model"], init), names[_INPUTS]()


def _shapes(module: Module, values: Sequence[int]) -> Shapes | None:
    from imported.modules import shapes_of

    try:
        return shapes_of(*_parts(module.load(values)))
    except Exception:  # noqa: BLE001 - whatever the benchmark's code raises for these sizes
        return None


def _number(path: Path) -> tuple[str, int]:
    found = re.match(r"\d+", path.name)
    return path.parent.name, int(found[0]) if found else 0
