"""AgentKernelArena: Triton kernels with a script, and PyTorch functions to be rewritten.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import json
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

TERMS = {"licence": "Apache-2.0", "redistribute": True}
MARK = "tasks/triton2triton"
TASKS = ("tasks/**/config.yaml",)

_FUNCTIONS, _SCRIPTS = "pytorch_code_functional/*_func.py", "scripts/task_runner.py"
_MODULES, _CHECKS = "pytorch_code_module/*.py", "eval_tools/correctness_check.py"
_SCHEMA, _KNOWN = re.compile(r"^schema_version: *(\S+)", re.MULTILINE), ("1", "2")
_EDITABLE = re.compile(r"^  editable:(.*(?:\n  (?:  )?- .*(?:\n    +\w.*)*)*)", re.MULTILINE)
_TIMING = "performance_utils_pytest.py"
"""What files with a kernel and its tests import; it measures."""

_LEFT_OUT = (
    ("flydsl", "NEEDS_PACKAGE", "its kernels are written in FlyDSL, which the Python lacks"),
    ("repository/", "NEEDS_CHECKOUT", "it changes a whole repository, which its setup clones"),
    ("image_kernel/", "NEEDS_IMAGE", "it runs in a container image with its own packages"),
    ("geak_eval/", "SCRIPT", "its harness puts the kernel into a package that it pretends to be"),
)
_OTHERWISE = "SCRIPT", "its script judges the whole program; no function of a module is called"
Table = dict[str, Any]


def task(checkout: Any, path: str) -> Table:
    """One task, by type and suite; the file that a solution replaces is the first."""
    home = path.removesuffix("/config.yaml")
    name, timing = home.removeprefix("tasks/"), f"{home}/{_TIMING}"
    functions = checkout.find(_FUNCTIONS, home)
    editable = [f"{home}/{file}" for file in _editable(checkout.text(path))]
    main = [*functions, *editable, *checkout.find("source/*.py", home)][:1]
    if checkout.has(timing):
        main = [*(main or [file for file in checkout.find("*.py", home) if file != timing]), timing]
    beside = [found for kind in (_MODULES, _CHECKS) for found in checkout.find(kind, home)]
    files = [*main, *checkout.find(_SCRIPTS, home)]
    files += [*(beside if functions and len(beside) == 2 else []), path]
    return {"name": name, "files": files, "tags": name.split("/")[:2]}


def _editable(config: str) -> list[str]:
    """The Python files that a config of schema 2 has a solution replace; none in schema 1."""
    found = _EDITABLE.search(config)
    return re.findall(r"[\w./-]+\.py\b", found[1]) if found else []


def capture(name: str, files: Sequence[str]) -> Table:
    """The facts of a task for the lock. Raises LeftOutError."""
    from imported.boundary import LeftOutError, needing_packages, sources
    from imported.scripted import learn_file, learn_function, learn_runner

    config = (HERE / "original" / files[-1]).read_text()
    if version := next((v for v in _SCHEMA.findall(config) if v not in _KNOWN), ""):
        raise LeftOutError("UNKNOWN_SCHEMA", f"its config.yaml has schema_version {version}")
    found = next(((c, why) for part, c, why in _LEFT_OUT if part in f"{name}/"), None)
    if found:
        raise LeftOutError(*found)
    if files[0].endswith("_func.py"):
        attrs, origin = needing_packages(lambda: learn_function(HERE / "original", *files[:-1]))
        files = [files[0], files[-1]]
    elif len(files) == 3:
        learn = learn_file if files[1].endswith(_TIMING) else learn_runner
        attrs, origin = needing_packages(lambda: learn(HERE / "original", *files[:2]))
    else:
        raise LeftOutError(*_OTHERWISE)
    return {
        "origin": origin,
        "attrs": {
            **attrs,
            **sources("aka", files),
            "brief": f"Write a Python file that computes what {files[0]} does, with the same "
            f"function and arguments, and is faster. (AgentKernelArena, {name})",
        },
    }


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of a call, from the original's own code under a seed."""
    from imported.modules import under_seed

    told, device = _told(), str(generator.device)
    return under_seed(generator, lambda: _task().inputs(told, config, device))


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    from imported.modules import under_seed

    told, device = _told(), str(generator.device)
    return under_seed(generator, lambda: _task().state(told, config, device))


def reference(**given: Any) -> Table:
    """What the original expects for arguments and weights, in their precision."""
    found: Table = _task().reference(_told(), given)
    return found


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
    """What a task's own code draws under these seeds, and computes where that can be asked for."""
    found: Table = _task().original(_told(), config, seeds)
    return found


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """The complaint of a task's own check about a candidate; "" if it passes."""
    return str(_task().original_check(_told(), config, seed, answer))


def _by_script(*tensors: Mapping[str, Tensor]) -> str:
    """What a task's script says of a call's results, given the call's inputs and the right ones."""
    return str(_task().check(_told(), *tensors))


def _task() -> Any:
    """A ``Functional``, or a ``Scripted``, which alone has checks."""
    from imported.scripted import task_of

    return task_of(HERE / "original", _told())


def _told() -> Table:
    told: Table = json.loads((HERE / "parameters.json").read_text())
    return told


if (HERE / "parameters.json").is_file() and _told().get("tier"):
    check = _by_script
