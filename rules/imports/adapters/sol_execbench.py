"""SOL-ExecBench: definitions with workloads, called with ``run(*inputs)``.

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
_CORE = "src/sol_execbench/core"
MARK = _CORE
"""What a checkout of this benchmark has."""
TASKS = ("[!.]*/**/definition.json",)

_INPUTS = f"{_CORE}/bench/io.py"
_CHECK = (f"{_CORE}/bench/correctness.py", f"{_CORE}/data/workload.py")
_NEEDED = (
    *("gen_inputs", "_rand_tensor", "_generate_heuristic_tensor", "_cast_to_fp4x2"),
    *("is_sampling_operation", "_is_weight_matrix", "_is_norm_weight", "_is_norm_bias"),
    *("_is_causal_attention_mask", "_is_binary_mask", "_is_rope_cos_sin", "_is_positive_tensor"),
    *("_is_ssm_decay", "_is_softmax_output"),
)
Table = dict[str, Any]


def task(checkout: Any, path: str) -> Table | None:
    """One directory with a definition: an example, a test's sample or a downloaded problem."""
    home = path.removesuffix("/definition.json")
    if "/." in home:
        return None
    beside = (f"{home}/workload.jsonl", _INPUTS, *_CHECK)
    files = [path, *(file for file in beside if checkout.has(file))]
    return {"name": home, "files": files, "tags": [home.split("/")[0]]}


def capture(name: str, files: Sequence[str]) -> Table:
    """The facts of a task for the lock. Raises LeftOutError."""
    drawing = [file for file in files if file not in _CHECK]
    facts = _defined().capture(name, drawing)
    return {**facts, "attrs": {**facts["attrs"], "check": [f for f in files if f in _CHECK]}}


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors of a call, from the benchmark's own functions under a seed."""
    return _defined().inputs(config, generator)


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The tensors that the benchmark leaves constant, such as scales of one, moved."""
    return _defined().state(config, generator)


def reference(**given: Any) -> Table:
    """The reference's results, in the precision of its arguments."""
    return _defined().reference(**given)


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> Table:
    """The original's draws under these seeds, and its results."""
    return _defined().original(config, seeds)


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """The complaint of the benchmark's comparison about a candidate; "" if it passes."""
    from imported.original_definitions import checked_rounds

    check, workloads = (HERE / "original" / file for file in _CHECK)
    return checked_rounds(check, workloads, _defined().question(config), seed, answer)


def _generate(
    definition: Definition, workload: Workload, names: Table, device: str
) -> Sequence[Any]:
    """The benchmark's own inputs."""
    from imported.definition import given_inputs

    custom = names[definition.custom] if definition.custom else None
    numbers = dict(workload.numbers)
    told = SimpleNamespace(
        inputs=definition.inputs,
        op_type=definition.op_type,
        get_input_shapes=definition.shapes,
        get_resolved_axes_values=definition.sizes,
    )
    asked = SimpleNamespace(
        axes=workload.axes, inputs=given_inputs(workload), get_scalar_inputs=lambda: numbers
    )
    found: Sequence[Any] = _functions()["gen_inputs"](told, asked, device, custom_inputs_fn=custom)
    return found


@cache
def _functions() -> Table:
    from imported.definition import STAND_INS
    from imported.original_code import definitions

    return definitions(HERE / "original" / _INPUTS, _NEEDED, STAND_INS)


def _defined() -> Defined:
    from imported.defined import Defined

    return Defined(HERE, "sol_execbench", "SOL-ExecBench", _generate, zeroed=True)
