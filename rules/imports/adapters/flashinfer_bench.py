"""FlashInfer-Bench: data sets of definitions with workloads, called with ``run(*inputs)``.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.defined import Defined
    from imported.definition import Definition, Workload
    from imported.original_functions import Answer
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "Apache-2.0", "redistribute": True}
_BENCH = "flashinfer_bench/bench"
MARK = _BENCH
"""What a checkout of this benchmark has."""
TASKS = ("[!.]*/**/definitions/**/*.json",)

_INPUTS = f"{_BENCH}/utils.py"
_CHECK = (
    f"{_BENCH}/evaluators/default.py",
    f"{_BENCH}/evaluators/utils.py",
    f"{_BENCH}/config.py",
)
_OWN_CHECKS = ("dsa_", "moe", "sampling")
"""Types of operation that are not compared by the default evaluator, or with other tolerances."""

_NEEDED = ("gen_inputs", "_rand_tensor", "is_sampling_operation")
Table = dict[str, Any]


def task(checkout: Any, path: str) -> Table | None:
    """One definition of a data set, with the workloads of the same name."""
    if "/." in path:
        return None
    home, _, below = path.rpartition("/definitions/")
    stem = below.rpartition("/")[2].removesuffix(".json")
    files = [path, *checkout.find(f"workloads/**/{stem}.jsonl", home)[:1]]
    files += [file for file in (_INPUTS, *_CHECK) if checkout.has(file)]
    name = path.removesuffix(".json").replace("/definitions/", "/")
    return {"name": name, "files": files, "tags": [home.rpartition("/")[2]]}


def capture(name: str, files: Sequence[str]) -> Table:
    """The facts of a task for the lock. Raises LeftOutError."""
    facts = _defined().capture(name, [file for file in files if file not in _CHECK])
    special = _defined().op_type(files[0]).startswith(_OWN_CHECKS)
    check = [] if special else [_INPUTS, *(file for file in files if file in _CHECK)]
    return {**facts, "attrs": {**facts["attrs"], "check": check}}


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of a call, from the benchmark's own functions under a seed."""
    return _defined().inputs(config, generator)


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors that the benchmark leaves constant, moved."""
    return _defined().state(config, generator)


def reference(**given: Any) -> Table:
    """The reference's results, in the precision of its arguments."""
    return _defined().reference(**given)


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
    """The original's draws under these seeds, and its results."""
    return _defined().original(config, seeds)


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """The complaint of the benchmark's default evaluator about a candidate; "" if it passes."""
    from imported.original_definitions import checked_by_evaluator

    asked = _defined().question(config)
    return checked_by_evaluator(HERE / "original" / _BENCH, asked, seed, answer)


def _generate(
    definition: Definition, workload: Workload, names: Table, device: str
) -> Sequence[Any]:
    """The benchmark's own inputs."""
    from imported.definition import given_inputs

    del names
    told = SimpleNamespace(
        inputs=definition.inputs,
        op_type=definition.op_type,
        get_input_shapes=lambda axes: [*definition.shapes(axes).values()],
    )
    asked = SimpleNamespace(axes=workload.axes, inputs=given_inputs(workload))
    found: Sequence[Any] = _functions()["gen_inputs"](told, asked, device)
    return found


@cache
def _functions() -> Table:
    from imported.definition import STAND_INS
    from imported.original_code import definitions

    return definitions(HERE / "original" / _INPUTS, _NEEDED, STAND_INS)


def _defined() -> Defined:
    from imported.defined import Defined

    return Defined(HERE, "flashinfer_bench", "FlashInfer-Bench", _generate, zeroed=False)
