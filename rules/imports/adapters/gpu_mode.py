"""gpu-mode's reference-kernels: ``custom_kernel(data)`` on what ``generate_input`` returns.

One problem asks for several functions instead.

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.functions import Learnt, Values
    from imported.original_functions import Answer
    from imported.problems import Problem
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
_TEST = re.compile(r'^ *- (\{(?![^{}]*"source")[^{}]*\})', re.MULTILINE)
_MODULES = ("utils.py", "task.py")
_EVALUATION = "eval.py"
_SEEDS = 2**16
"""Seeds are below this, as the originals' are: some add theirs to values, which then differ in it
alone."""
Table = dict[str, Any]


def tasks(root: Path) -> Iterator[Table]:
    """All problems: the reference first, then its declaration, then the modules that it imports."""
    for path in sorted(root.glob("problems/*/*/task.yml")):
        home = path.parent.relative_to(root).as_posix()
        sources = {name: f"{home}/{source}" for name, source in _FILE.findall(path.read_text())}
        files = [f"{home}/reference.py", f"{home}/task.yml"]
        files += [os.path.normpath(sources[name]) for name in _MODULES if name in sources]
        files += [own for own in (f"{home}/{_EVALUATION}",) if own == sources.get(_EVALUATION)]
        yield {"name": home.removeprefix("problems/"), "files": files, "tags": [home.split("/")[1]]}


def capture(name: str, files: Sequence[str]) -> Table:
    """What the lock says of a task. Raises LeftOutError."""
    from imported.boundary import LeftOutError, needing_packages, sources
    from imported.constants import read_module
    from imported.problems import ENTRY, GENERATE, REFERENCE, narrowed
    from imported.starting_points import first_steady

    text = (HERE / "original" / files[1]).read_text()
    if "multi_gpu: true" in text:
        raise LeftOutError("NEEDS_SEVERAL_GPUS", "it computes on several GPUs at once")
    problem = needing_packages(lambda: _problem(files))
    if problem is None:
        what = f"it has no {GENERATE} and {REFERENCE}, so that nothing says what is called"
        raise LeftOutError("NO_ENTRY", what)
    code = (HERE / "original" / files[0]).read_text()
    checked = "check_impl" in code and REFERENCE not in code.partition("check_impl")[2]
    tests, _, benchmarks = text.partition("\nbenchmarks:")
    settings = sorted(_settings(tests), key=_size, reverse=True)
    settings += _settings(benchmarks)  # these are too large to learn from
    settings = [{**problem.settings, **one} for one in settings]
    learnt, settings = first_steady(settings, lambda shown: _learn(problem, shown, checked=checked))
    if checked and len(learnt.told["inputs"]) != 1:
        what = "its check is of properties of a result, and of more than one tensor"
        raise LeftOutError("NO_UNIQUE_RESULT", what)
    return {
        "origin": read_module(HERE / "original" / files[0], functions=(), of="").origin,
        "attrs": {
            **narrowed(learnt.declared(settings)),
            **sources("gpu_mode", files),
            **problem.attrs,
            "check": [*files[:1]] * (problem.entry == ENTRY),
            "modules": [file for file in files if file.endswith(_MODULES)],
            "parameters": learnt.parameters(settings[0], files=list(files), checked=checked),
            "brief": f"Write {problem.wanted} of {files[0]}, from the same data, only faster. "
            f"(gpu-mode, {name})",
        },
    }


def _learn(problem: Problem, settings: Table, *, checked: bool) -> Learnt:
    from imported.functions import learn, tensors

    def call(moved: Mapping[str, int], device: str) -> tuple[Values, list[Tensor]]:
        values = _call(problem, {**settings, **moved}, device)
        return values, list(tensors(values).values())

    return learn(
        problem.function,
        call,
        {name: value for name, value in settings.items() if type(value) is int},
        problem.entry,
        devices=("meta", "cpu"),
        text=problem.text,
        checked=checked,
        memory=True,
    )


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of the data, from the original's own function under a seed."""
    from imported.functions import inputs_of, sized
    from imported.modules import under_seed

    told = _told()
    problem, device = _known(told), str(generator.device)
    return under_seed(
        generator, lambda: inputs_of(_call(problem, sized(told, config), device), told)
    )


def reference(**given: Any) -> dict[str, Any]:
    """What the original computes from the data, in its precision."""
    from imported.functions import run, sized

    told = _told()
    problem = _known(told)
    values = _call(problem, sized(told, given), told["device"])
    return run(problem.function, values, given, told)


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
    """What the original draws under these seeds, and computes."""
    import torch
    from imported.devices import ZeroedMemory
    from imported.functions import sized, tensors
    from imported.original_code import on
    from imported.original_functions import cloned, results_of

    told = _told()
    module = _load(told["files"])
    with on(str(torch.get_default_device())), ZeroedMemory():
        torch.manual_seed(seeds["inputs"])  # some data is drawn without the problem's generator
        data = module.generate_input(**sized(told, config), seed=seeds["inputs"] % _SEEDS)
    found = tensors({"data": cloned(data)})
    results = results_of(module.ref_kernel, {"data": data}, told)
    return {"inputs": {n: found[n] for n in told["inputs"]}, "state": {}, "results": results}


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """What the problem's own check says of a candidate; "" where it passes."""
    import torch
    from imported.functions import sized
    from imported.original_functions import checked_data

    told = _told()
    settings = {**sized(told, config), "seed": seed % _SEEDS}
    device = str(torch.get_default_device())
    return checked_data(_load(told["files"]), settings, device, answer)


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
    for file in (*(f for f in files if f.endswith(_MODULES)), files[0]):
        path = HERE / "original" / file
        module = sys.modules[path.stem] = ModuleType(path.stem)
        module.__file__ = str(path)
        exec(compile(path.read_text(), path, "exec"), vars(module))  # noqa: S102 - the task's code
    return sys.modules["reference"]


def _problem(files: Sequence[str]) -> Problem | None:
    from imported.problems import read_problem

    stem = Path(files[0]).parent.name.removesuffix("_py")
    own = next((file for file in files if file.endswith(f"/{_EVALUATION}")), "")
    evaluation = (HERE / "original" / own).read_text() if own else ""
    return read_problem(_load(files), stem, evaluation)


def _known(told: Table) -> Problem:
    problem = _problem(told["files"])
    assert problem is not None
    return problem


def _call(problem: Problem, settings: Table, device: str) -> Values:
    """The data for some settings, under the seed of the global generator."""
    import torch
    from imported.devices import ZeroedMemory, instead_of_cuda

    seed = torch.initial_seed() % _SEEDS
    with instead_of_cuda(device), ZeroedMemory():
        return problem.data(**settings, seed=seed)


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
