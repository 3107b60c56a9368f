"""gpu-mode's reference-kernels: ``custom_kernel(data)`` on what ``generate_input`` returns.

``tasks``, ``TERMS`` and ``MARK`` are read by ``kabuild import`` and need the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import ast
import json
import math
import os.path
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.functions import Values
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {
    "licence": "LicenseRef-June-9-Researcher-Reciprocity",
    "redistribute": False,
    "note": "the licence restricts how these files are used to train or improve models",
}
MARK = "problems/pmpp_v2"

_FILE = re.compile(r'"name": "(\w+\.py)", "source": "([^"@]+)"')
_TEST = re.compile(r"^ *- (\{[^{}]*\"seed\"[^{}]*\})", re.MULTILINE)
_GENERATE, _REFERENCE = "generate_input", "ref_kernel"
_MODULES = ("utils.py", "task.py")
Table = dict[str, Any]


def tasks(root: Path) -> Iterator[Table]:
    """All problems: the reference first, then its declaration, then the modules that it imports."""
    for path in sorted(root.glob("problems/*/*/task.yml")):
        home = path.parent.relative_to(root).as_posix()
        sources = {name: f"{home}/{source}" for name, source in _FILE.findall(path.read_text())}
        files = [f"{home}/reference.py", f"{home}/task.yml"]
        files += [os.path.normpath(sources[name]) for name in _MODULES if name in sources]
        yield {"name": home.removeprefix("problems/"), "files": files, "tags": [home.split("/")[1]]}


def capture(name: str, files: Sequence[str]) -> Table:
    """What the lock says of a task. Raises LeftOutError."""
    from imported.boundary import LeftOutError, needing_packages, sources
    from imported.constants import read_module
    from imported.functions import learn

    text = (HERE / "original" / files[1]).read_text()
    if "multi_gpu: true" in text:
        raise LeftOutError("NEEDS_SEVERAL_GPUS", "it computes on several GPUs at once")
    reference = needing_packages(lambda: _load(files))
    if not {_GENERATE, _REFERENCE} <= vars(reference).keys():
        what = f"it has no {_GENERATE} and {_REFERENCE}, so that nothing says what is called"
        raise LeftOutError("NO_ENTRY", what)
    checked = (
        _REFERENCE not in (HERE / "original" / files[0]).read_text().partition("check_impl")[2]
    )
    settings = sorted(_settings(text.partition("\nbenchmarks:")[0]), key=_size, reverse=True)
    settings += _settings(text.partition("\nbenchmarks:")[2])  # these are too large to learn from
    sizes = {name: value for name, value in settings[0].items() if type(value) is int}

    def call(moved: Mapping[str, int], device: str) -> tuple[Values, list[Tensor]]:
        from imported.functions import tensors

        values = _call(reference, {**settings[0], **moved}, device)
        return values, list(tensors(values).values())

    learnt = learn(
        getattr(reference, _REFERENCE),
        call,
        sizes,
        "custom_kernel",
        devices=("meta", "cpu"),
        checked=checked,
    )
    if checked and len(learnt.told["inputs"]) != 1:
        what = "its check is of properties of a result, and of more than one tensor"
        raise LeftOutError("NO_UNIQUE_RESULT", what)
    return {
        "origin": read_module(HERE / "original" / files[0], functions=(), of="").origin,
        "attrs": {
            **learnt.declared(settings),
            **sources("gpu_mode", files),
            "baseline": _REFERENCE,
            "modules": [file for file in files if file.endswith(_MODULES)],
            "parameters": learnt.parameters(settings[0], files=list(files), checked=checked),
            "brief": f"Write a function custom_kernel that computes what {_REFERENCE} of "
            f"{files[0]} does, from the same data, and is faster. (gpu-mode, {name})",
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of the data, from the original's own function under a seed."""
    from imported.functions import inputs_of, sized
    from imported.modules import under_seed

    told = _told()
    reference, device = _load(told["files"]), str(generator.device)
    draw = under_seed(generator, lambda: _call(reference, sized(told, config), device))
    return inputs_of(draw, told)


def reference(**given: Any) -> dict[str, Any]:
    """What the original computes from the data, in its precision."""
    from imported.functions import run, sized

    told = _told()
    original = _load(told["files"])
    values = _call(original, sized(told, given), told["device"])
    return run(getattr(original, _REFERENCE), values, given, told)


def _settings(text: str) -> list[Table]:
    found = (ast.literal_eval(test) for test in _TEST.findall(text))
    return [{name: value for name, value in test.items() if name != "seed"} for test in found]


def _size(settings: Table) -> int:
    return math.prod(value for value in settings.values() if type(value) is int)


def _told() -> Table:
    told: Table = json.loads((HERE / "parameters.json").read_text())
    return told


def _load(files: Sequence[str]) -> ModuleType:
    """The reference, after the modules that it imports."""
    for file in (*files[2:], files[0]):
        path = HERE / "original" / file
        module = sys.modules[path.stem] = ModuleType(path.stem)
        module.__file__ = str(path)
        exec(compile(path.read_text(), path, "exec"), vars(module))  # noqa: S102 - the task's code
    return sys.modules["reference"]


def _call(reference: ModuleType, settings: Table, device: str) -> Values:
    """The data for some settings, under the seed of the global generator."""
    import torch
    from imported.devices import instead_of_cuda

    generate: Callable[..., Any] = getattr(reference, _GENERATE)
    seed = torch.initial_seed() % 2**31
    with instead_of_cuda(device):
        return {"data": generate(**settings, seed=seed)}


def _own_check(
    inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> str:
    """What the original's check of properties finds wrong; empty for nothing."""
    del expected
    results = tuple(outputs[name] for name in sorted(outputs))
    right, said = _load(_told()["files"]).check_implementation(
        *inputs.values(), results if len(results) > 1 else results[0]
    )
    return "" if right else said or "its check fails"


if (HERE / "parameters.json").is_file() and _told()["checked"]:
    check = _own_check
