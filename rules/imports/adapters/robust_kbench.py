"""robust-kbench: ``Model`` calls ``forward_fn`` with its weights; answers define ``forward``,
or ``backward``, which ``AutogradFunction`` calls.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.configured import Configured
    from imported.original_functions import Answer
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "Apache-2.0", "redistribute": True}
MARK = "robust_kbench"
TASKS = ("tasks/**/func_*ward.py",)

_CHECKS = ("robust_kbench/sandbox/correct_forward_fn.py", "robust_kbench/utils.py")
_COMPUTED = {
    "forward": "what forward_fn",
    "backward": "what the backward pass of AutogradFunction",
}
Table = dict[str, Any]


def task(checkout: Any, path: str) -> Table:
    """One task; if it answers with gradients, its name ends in ``_backward``."""
    home, _, file = path.rpartition("/")
    name, way = home.removeprefix("tasks/"), file.removeprefix("func_").removesuffix(".py")
    files = [path, f"{home}/config_{way}.json", *checkout.find("[0-9]*_*.py", home)]
    files += [check for check in _CHECKS if way == "forward" and checkout.has(check)]
    return {
        "name": name if way == "forward" else f"{name}_backward",
        "files": files,
        "tags": [way, *name.split("/")[1:2]],
    }


def capture(name: str, files: Sequence[str]) -> Table:
    """The facts of a task for the lock. Raises LeftOutError."""
    from imported.boundary import needing_packages, sources
    from imported.configured import FUNCTION
    from imported.constants import read_module

    checks = [file for file in files if file in _CHECKS]
    files = [file for file in files if file not in _CHECKS]
    task = needing_packages(lambda: _task(files[0]))
    settings = task.settings(json.loads((HERE / "original" / files[1]).read_text()))
    learnt, entry = task.learn(settings), task.entry
    more = {"adapter": "//rules/imports/tools/gradients.py", "entry": entry}
    module = HERE / "original" / files[-1 if len(files) > 2 else 0]
    return {
        "origin": read_module(module, functions=(), of="Model").origin + entry,
        "attrs": {
            **learnt.declared(settings),
            **sources("robust_kbench", files),
            **(more if entry == "backward" else {}),
            "check": checks,
            "baseline": FUNCTION,
            "parameters": learnt.parameters(settings[0], file=files[0]),
            "brief": f"Write a function {entry} that computes {_COMPUTED[entry]} of {files[0]} "
            f"does, from the same arguments, and is faster. (robust-kbench, {name})",
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of a call, from the original's own functions under a seed."""
    from imported.modules import under_seed

    told, device = _told(), str(generator.device)
    task = _task(told["file"])
    return under_seed(generator, lambda: task.inputs(told, config, device))


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    from imported.modules import under_seed

    told, device = _told(), str(generator.device)
    task = _task(told["file"])
    return under_seed(generator, lambda: task.state(told, config, device))


def reference(**given: Any) -> dict[str, Tensor]:
    """The original's results for arguments and weights, in their precision."""
    told = _told()
    return _task(told["file"]).reference(told, given)


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
    """The original's draws under these seeds, and its results."""
    told = _told()
    return _task(told["file"]).original(told, config, seeds)


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """What robust-kbench's check, which has its own seeds, says of a candidate."""
    del seed
    told, (check, utilities) = _told(), (HERE / "original" / file for file in _CHECKS)
    return _task(told["file"]).check(told, config, (check, utilities), answer)


def _task(file: str) -> Configured:
    from imported.configured import Configured

    return Configured(HERE / "original" / file)


def _told() -> Table:
    told: Table = json.loads((HERE / "parameters.json").read_text())
    return told
