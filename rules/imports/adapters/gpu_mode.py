"""gpu-mode's reference-kernels: ``custom_kernel(data)`` on what ``generate_input`` returns.

One problem asks for several functions instead.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import json
import os.path
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.original_functions import Answer
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {
    "licence": "LicenseRef-June-9-Researcher-Reciprocity",
    "redistribute": False,
    "note": "the licence restricts how these files are used to train or improve models",
}
MARK = "problems/pmpp_v2"
TASKS = ("problems/*/*/task.yml",)

_FILE = re.compile(r'"name": "(\w+\.py)", "source": "([^"@]+)"')
_MODULES = ("utils.py", "task.py")
_EVALUATION = "eval.py"
Table = dict[str, Any]


def task(checkout: Any, path: str) -> Table:
    """One problem: the reference first, then its declaration, then the modules that it imports."""
    home = path.removesuffix("/task.yml")
    sources = {name: f"{home}/{file}" for name, file in _FILE.findall(checkout.text(path))}
    files = [f"{home}/reference.py", path]
    files += [os.path.normpath(sources[name]) for name in _MODULES if name in sources]
    files += [own for own in (f"{home}/{_EVALUATION}",) if own == sources.get(_EVALUATION)]
    return {"name": home.removeprefix("problems/"), "files": files, "tags": [home.split("/")[1]]}


def capture(name: str, files: Sequence[str]) -> Table:
    """The facts of a task for the lock. Raises LeftOutError."""
    from imported.boundary import LeftOutError, needing_packages, sources
    from imported.constants import read_module
    from imported.problems import ENTRY, checks_properties, narrowed, read_problem, settings_in
    from imported.starting_points import first_steady

    root = HERE / "original"
    text = (root / files[1]).read_text()
    if "multi_gpu: true" in text:
        raise LeftOutError("NEEDS_SEVERAL_GPUS", "it computes on several GPUs at once")
    problem = needing_packages(lambda: read_problem(root, files))
    checked = checks_properties((root / files[0]).read_text())
    choices = [{**problem.settings, **one} for one in settings_in(text)]
    learnt, settings = first_steady(choices, lambda shown: problem.learn(shown, checked=checked))
    if checked and len(learnt.told["inputs"]) != 1:
        what = "its check is of properties of a result, and of more than one tensor"
        raise LeftOutError("NO_UNIQUE_RESULT", what)
    return {
        "origin": read_module(root / files[0], functions=(), of="").origin,
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


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of the data, from the original's own function under a seed."""
    from imported.functions import inputs_of, sized
    from imported.modules import under_seed
    from imported.problems import read_problem

    told, device = _told(), str(generator.device)
    problem, settings = read_problem(HERE / "original", told["files"]), sized(told, config)
    return under_seed(generator, lambda: inputs_of(problem.call(settings, device), told))


def reference(**given: Any) -> dict[str, Any]:
    """The original's results for the data, in its precision."""
    from imported.functions import run, sized
    from imported.problems import read_problem

    told = _told()
    problem = read_problem(HERE / "original", told["files"])
    return run(problem.function, problem.call(sized(told, given), told["device"]), given, told)


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
    """The original's draws under these seeds, and its results."""
    from imported.original_functions import drawn_data
    from imported.problems import load_reference

    told = _told()
    module = load_reference(HERE / "original", told["files"])
    return drawn_data(module, config, seeds["inputs"], told)


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """The complaint of the problem's own check about a candidate; "" if it passes."""
    from imported.original_functions import checked_data
    from imported.problems import load_reference

    told = _told()
    module = load_reference(HERE / "original", told["files"])
    return checked_data(module, config, seed, told, answer)


def _told() -> Table:
    told: Table = json.loads((HERE / "parameters.json").read_text())
    return told


def _own_check(
    inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> str:
    """What the original's check of properties finds wrong; empty for nothing."""
    from imported.original_functions import complaint_of_properties
    from imported.problems import load_reference

    del expected
    module = load_reference(HERE / "original", _told()["files"])
    return complaint_of_properties(module, inputs, outputs)


if (HERE / "parameters.json").is_file() and _told()["checked"]:
    check = _own_check
